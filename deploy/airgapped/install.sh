#!/bin/sh
# install.sh FOLDER [TARGET] [agent|server]: installs from the folder alone, into a virtual environment of its own.
set -eu
[ $# -ge 1 ] || { echo "usage: install.sh FOLDER [TARGET] [agent|server]" >&2; exit 2; }
folder=$1 target=${2:-/opt/flopwatch} kind=${3:-agent}
case $kind in
  agent) wanted=flopwatch ;;
  server) wanted='flopwatch[server]' ;;
  *) echo "install.sh: $kind is neither agent nor server" >&2; exit 2 ;;
esac
(cd "$folder" && sha256sum --check --quiet SHA256SUMS)
"${PYTHON:-python3}" -m venv "$target"
"$target/bin/python" -m pip install --quiet --disable-pip-version-check --no-index --find-links "$folder" "$wanted"
"$target/bin/flopwatch" --version
