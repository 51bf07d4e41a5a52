// Package dynamov1 is the wire form of dynamo.v1, the public contract of workers that are not our binary. It is generated from the .proto
// files beside it by runtime/api/generate.sh; what the fields mean is written there. Only runtime/transport maps it to package llm.
package dynamov1
