#!/bin/sh
# collect.sh WHEEL FOLDER [agent|server]: everything that an install without network needs, in one folder.
# Run it where packages can be had, with the Python version of the target machines.
set -eu
[ $# -ge 2 ] || { echo "usage: collect.sh WHEEL FOLDER [agent|server]" >&2; exit 2; }
wheel=$1 folder=$2 kind=${3:-agent}
case $kind in
  agent) wanted=$wheel ;;
  server) wanted="flopwatch[server] @ file://$(cd "$(dirname "$wheel")" && pwd)/$(basename "$wheel")" ;;
  *) echo "collect.sh: $kind is neither agent nor server" >&2; exit 2 ;;
esac
mkdir -p "$folder"
"${PYTHON:-python3}" -m pip download --quiet --only-binary :all: --dest "$folder" "$wanted"
cp -f "$wheel" "$folder/"
(cd "$folder" && sha256sum ./*.whl >SHA256SUMS)
set -- "$folder"/*.whl
echo "$folder: $# wheels"
