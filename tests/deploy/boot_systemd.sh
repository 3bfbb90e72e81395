#!/bin/bash
# Boot systemd as PID 1 of namespaces of its own, over a copy-on-write view of this root directory.
#
#     unshare --mount --pid --fork --cgroup --uts --ipc boot_systemd.sh SCRATCH OVER TARGET [DIRECTORY…]
#
# SCRATCH is an empty directory that gets what is written. What is in OVER is laid over the root directory.
# Each DIRECTORY is shared with this machine as it is. Nothing that runs in there reaches the kernel's
# settings or this machine's units.
set -eu
scratch=$1 over=$2 target=$3
shift 3

mount --make-rprivate /
mount -t tmpfs tmpfs "$scratch"
mkdir "$scratch"/{upper,work,root}
root=$scratch/root
mount -t overlay overlay -o "lowerdir=/,upperdir=$scratch/upper,workdir=$scratch/work" "$root"

mount -t proc proc "$root/proc"
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,ro,bind "$root/proc/sys"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t tmpfs -o mode=755 tmpfs "$root/run"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom tty fuse; do cp -a "/dev/$device" "$root/dev/"; done
chmod 666 "$root/dev/fuse"
mkdir "$root"/dev/{pts,shm}
ln -s /proc/self/fd "$root/dev/fd"
ln -s pts/ptmx "$root/dev/ptmx"

if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
    mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
else
    mount -t tmpfs tmpfs "$root/sys/fs/cgroup"
    for hierarchy in /sys/fs/cgroup/*/; do
        name=$(basename "$hierarchy")
        [ "$name" != cpuset ] || continue
        mkdir "$root/sys/fs/cgroup/$name"
        case $name in
            unified) mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup/$name" ;;
            systemd) mount -t cgroup -o none,name=systemd cgroup "$root/sys/fs/cgroup/$name" ;;
            *) mount -t cgroup -o "$name" cgroup "$root/sys/fs/cgroup/$name" ;;
        esac
    done
fi

for directory in "$@"; do
    mkdir -p "$root$directory"
    mount --rbind "$directory" "$root$directory"
done

# What this machine remembers is none of the other's business.
rm -rf "$root"/var/lib/engramfs "$root"/etc/engramfs

# Only the units of the test, and none that sets a machine up.
units=$root/etc/systemd/system
mount -t tmpfs tmpfs "$units"
for unit in systemd-{sysctl,modules-load,random-seed,update-utmp,remount-fs,tmpfiles-setup,tmpfiles-setup-dev} \
    systemd-{hwdb-update,machine-id-commit,binfmt,sysusers,udevd,udev-trigger,firstboot,pstore} kmod-static-nodes; do
    ln -s /dev/null "$units/$unit.service"
done
for unit in dev-hugepages dev-mqueue sys-kernel-debug sys-kernel-tracing sys-kernel-config; do
    ln -s /dev/null "$units/$unit.mount"
done
cp -r "$over"/. "$root/"

cd "$root"
mkdir -p .old
pivot_root . .old
umount -l .old
exec env -i container=test PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    /lib/systemd/systemd --unit="$target" --log-target=console --log-level=warning
