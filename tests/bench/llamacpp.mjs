// llama.cpp as a subject of the benchmark: the prebuilt addon of node-llama-cpp, one context with as many sequences as streams, continuous
// batching. It reads a job a line from stdin and writes its result to stdout, as child.go says. Tokens are chosen greedily; an end token
// is a token like others.
import {createInterface} from "node:readline";
import {readFileSync} from "node:fs";
import {createRequire} from "node:module";
import {pathToFileURL} from "node:url";
import path from "node:path";

const [modules, modelPath, threads, sequences, flash] = process.argv.slice(2);
const {getLlama} = await import(pathToFileURL(path.join(modules, "node-llama-cpp/dist/index.js")).href);

let backend = "", amx = false;
const llama = await getLlama({
    gpu: false, build: "never", skipDownload: true, maxThreads: 0, progressLogs: false, logLevel: "debug",
    logger(level, line) {
        const m = /load_backend: loaded CPU backend from .*?([^/]+)\.so/.exec(line);
        if (m) backend = m[1];
        amx ||= /AMX model buffer/.test(line);
    }
});
const model = await llama.loadModel({modelPath, gpuLayers: 0});
const say = (v) => process.stdout.write(JSON.stringify(v) + "\n");
const contexts = new Map();

// A context has as many sequences as the job has streams: one with idle sequences would cost llama.cpp speed.
async function context(n) {
    if (!contexts.has(n))
        contexts.set(n, await model.createContext({
            sequences: n, contextSize: 512, batchSize: 512, threads: Number(threads),
            flashAttention: flash === "auto" ? "auto" : flash === "on"
        }));
    return contexts.get(n);
}
for (const n of sequences.split(",")) await context(Number(n));

const version = JSON.parse(readFileSync(path.join(modules, "node-llama-cpp/package.json"))).version;
say({about: `llama.cpp ${llama.llamaCppRelease.release} of node-llama-cpp ${version}, ${backend}${amx ? " with AMX weights" : ""}, ` +
    `flash attention ${flash}; ${llama.systemInfo.trim()}`});

for await (const line of createInterface({input: process.stdin})) {
    const {prompts, output} = JSON.parse(line);
    const ctx = await context(prompts.length);
    const seqs = prompts.map(() => ctx.getSequence());
    const start = performance.now();
    const streams = await Promise.all(prompts.map(async (prompt, i) => {
        const tokens = [], at = [];
        for await (const t of seqs[i].evaluate(prompt, {temperature: 0, yieldEogToken: true})) {
            at.push((performance.now() - start) / 1e3);
            tokens.push(t);
            if (tokens.length === output) break;
        }
        return {tokens, at};
    }));
    for (const s of seqs) s.dispose();
    say({streams});
}
process.exit(0);
