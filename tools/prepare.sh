#!/bin/sh
# Check for what pip cannot install, and install it where that needs no questions (root or passwordless sudo, apt).
#
# usage: tools/prepare.sh NEED...     NEED: venv, libpython, iverilog, compiler, cadical
# PYTHON names the interpreter that makes .venv (default python3).
set -eu

python=${PYTHON:-python3}
[ -x .venv/bin/pip ] && python=.venv/bin/python

stop() {
    echo "prepare: $*" >&2
    exit 1
}

# cocotb embeds Python into the simulator, so the interpreter must also exist as a shared library.
has_libpython() {
    "$python" - <<'PYTHON' 2>/dev/null
import ctypes, os, sys, sysconfig
name = sysconfig.get_config_var("INSTSONAME") or ""
folders = [sysconfig.get_config_var(key) for key in ("LIBDIR", "LIBPL", "PYTHONFRAMEWORKPREFIX")]
for path in [name] + [os.path.join(folder or "", name) for folder in [*folders, os.path.join(sys.base_prefix, "lib")]]:
    try:
        ctypes.CDLL(path)
        sys.exit(0)
    except OSError:
        pass
sys.exit(1)
PYTHON
}

has() {
    case $1 in
    venv) [ -x .venv/bin/pip ] || "$python" -c 'import ensurepip, venv' 2>/dev/null ;;
    libpython) has_libpython ;;
    iverilog) command -v iverilog >/dev/null ;;
    compiler) command -v c++ >/dev/null && command -v perl >/dev/null ;;
    cadical) command -v cadical >/dev/null ;;
    *) stop "unknown need '$1': must be venv, libpython, iverilog, compiler or cadical" ;;
    esac
}

# package NEED SYSTEM: the package that holds it
package() {
    case $1:$2 in
    venv:debian) echo python3 python3-venv ;;
    venv:fedora) echo python3 ;;
    libpython:debian) echo libpython3-dev ;;
    libpython:fedora) echo python3-libs ;;
    venv:* | libpython:*) echo python ;;
    iverilog:brew) echo icarus-verilog ;;
    iverilog:*) echo iverilog ;;
    cadical:*) echo cadical ;;
    compiler:debian) echo g++ perl ;;
    compiler:fedora) echo gcc-c++ perl ;;
    compiler:arch) echo gcc perl ;;
    compiler:brew) echo gcc ;;
    esac
}

packages() {
    for need in $missing; do package "$need" "$1"; done | tr '\n' ' ' | sed 's/ $//'
}

find_missing() {
    missing=
    for need in "$@"; do has "$need" || missing="$missing $need"; done
}

find_missing "$@"
if [ -n "$missing" ]; then
    as_root=no
    [ "$(id -u)" = 0 ] && as_root=
    [ -n "$as_root" ] && sudo -n true 2>/dev/null && as_root='sudo -n'
    if command -v apt-get >/dev/null && [ "$as_root" != no ]; then
        echo "==> Installing system packages: $(packages debian)"
        $as_root apt-get update -qq || stop "apt-get cannot reach its mirrors: check the network, then run make again"
        # shellcheck disable=SC2046  # several packages
        $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(packages debian) >/dev/null ||
            stop "apt-get could not install $(packages debian): mend what it says above, then run make again"
        find_missing "$@"
    else
        stop "missing:$missing. Install with one of:" \
            "apt-get install $(packages debian) (Debian, Ubuntu) |" \
            "dnf install $(packages fedora) (Fedora) |" \
            "pacman -S $(packages arch) (Arch) |" \
            "brew install $(packages brew) (macOS)"
    fi
fi
case $missing in
'') ;;
*libpython*) stop "$python has no shared library; use one that does, for example: make distclean, then PYTHON=/usr/bin/python3" ;;
*) stop "still missing:$missing" ;;
esac

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    stop "$("$python" --version) is too old, 3.11 or newer is needed; name one: make PYTHON=python3.11"
case " $* " in *" iverilog "*)
    version=$(iverilog -V 2>/dev/null | sed -n '1s/.*version \([0-9]*\).*/\1/p')
    [ "${version:-0}" -ge 11 ] || stop "Icarus Verilog ${version:-of unknown version} is too old, 11 or newer is needed"
    ;;
esac
