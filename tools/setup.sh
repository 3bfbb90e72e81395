#!/bin/bash
# Make this checkout ready: install the Debian packages that are missing, build .venv.
#
#     tools/setup.sh [EXTRA...]     extras of pyproject.toml beside test and lint, such as: bench
#
# It says what it does. When nothing has changed since the last time it ends at once: a stamp in .venv
# records what was installed, and from what. Packages are asked for by what they provide, so a Python,
# compiler or libfuse from elsewhere is as good.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
venv=.venv
stamp=$venv/setup-stamp

say() { echo "setup: $*"; }

fail() {
    echo "setup: $*" >&2
    exit 1
}

# The first python3 in PATH that is new enough and works, or a versioned one.
find_python() {
    local candidate
    for candidate in $(type -aP python3 python3.11 python3.12 python3.13 python3.14); do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
}

can_compile() {
    command -v gcc >/dev/null && echo '#include <stdio.h>' | gcc -x c -fsyntax-only - 2>/dev/null
}

# Debian's packages for what is not there yet, one a line.
missing_packages() {
    local python=$1 headers
    command -v fusermount3 >/dev/null || echo fuse3
    command -v git >/dev/null || echo git # export --git and import --git
    command -v pkg-config >/dev/null && pkg-config --exists fuse3 || echo libfuse3-dev pkg-config
    can_compile || echo gcc libc6-dev
    command -v systemd-analyze >/dev/null || echo systemd # for the tests of systemd/; it need not run
    # For the tests of sandbox runtimes; those of Podman and Docker are skipped where these are not.
    command -v bwrap >/dev/null || echo bubblewrap
    command -v crun >/dev/null || echo crun
    PATH=$PATH:/usr/sbin command -v runc >/dev/null || echo runc
    [ -x /bin/busybox ] || [ -x /usr/bin/busybox ] || echo busybox-static
    if [ -z "$python" ]; then
        echo python3 python3-venv python3-dev
        return
    fi
    "$python" -c 'import ensurepip, venv' 2>/dev/null || echo python3-venv
    headers=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["include"])')
    [ -e "$headers/Python.h" ] || echo python3-dev
    for extra in "${extras[@]}"; do
        if [ "$extra" = bench ] && ! command -v bindfs >/dev/null; then echo bindfs; fi
    done
}

install_packages() {
    local packages=("$@")
    if [ "$(id -u)" != 0 ]; then
        fail "packages are missing; as root: apt-get install ${packages[*]}"
    fi
    command -v apt-get >/dev/null ||
        fail "packages are missing and this is not Debian; install what it calls: ${packages[*]}"
    say "installing ${packages[*]}"
    export DEBIAN_FRONTEND=noninteractive
    apt-get -q -q -o DPkg::Lock::Timeout=300 update
    apt-get -q -q -y -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 install --no-install-recommends \
        "${packages[@]}" >/dev/null
}

build_venv() {
    local python=$1
    if ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
        say "making $venv with $python ($("$python" --version))"
        "$python" -m venv --clear "$venv"
    fi
    say "installing engramfs[$wanted] into $venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --editable ".[$wanted]"
}

extras=("$@")
wanted=$(IFS=,; echo "test,lint${extras[*]:+,${extras[*]}}")

# One set-up at a time in one checkout; a second waits and then finds nothing to do.
exec 9<tools/setup.sh
flock 9

# The path counts: an editable installation and the scripts in .venv/bin hold it.
fingerprint=$({ echo "$root"; cat pyproject.toml tools/setup.sh; } | sha256sum | cut -d' ' -f1)
if [ -x $venv/bin/python ] && [ -r $stamp ] && command -v fusermount3 >/dev/null; then
    read -r was had <$stamp
    # What an earlier run installed stays wanted: extras only add up.
    if [ "$was" = "$fingerprint" ]; then
        missing=
        for extra in "${extras[@]}"; do [[ ",$had," = *",$extra,"* ]] || missing=$extra; done
        [ -n "$missing" ] || exit 0
    fi
fi

python=$(find_python)
mapfile -t packages < <(missing_packages "$python" | tr ' ' '\n')
if [ ${#packages[@]} -gt 0 ]; then
    install_packages "${packages[@]}"
    python=$(find_python)
fi
[ -n "$python" ] || fail "no python3 of 3.11 or later in PATH; install one"
build_venv "$python"
echo "$fingerprint $wanted" >$stamp
say "done"
