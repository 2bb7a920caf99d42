# The jail of util-linux: a root that has nothing but what is named, on a small disk in memory; then the command in it.
# usage, in namespaces of its own: jail.sh ROOT DISK SEEN HIDDEN PYTHON COMMAND [ARG ...]
# ROOT is any empty folder; DISK the options of its tmpfs; SEEN and HIDDEN are paths, one a line, that must not have a line break in them.
set -euf
PATH=$PATH:/usr/sbin:/sbin # where Debian has chroot, which users' PATH lacks
IFS='
'
root=$1 disk=$2 seen=$3 hidden=$4 python=$5
shift 5
umask 022

# show OPTIONS PATH [SOURCE]: in the jail PATH is what SOURCE is outside, by default PATH itself
show() {
    place=$root$2
    mkdir -p "${place%/*}"
    if [ -L "$2" ]; then
        cp -P "$2" "$place"
        return
    elif [ -d "$2" ]; then
        mkdir -p "$place"
    else
        touch "$place"
    fi
    mount -o "$1" "${3:-$2}" "$place"
}

mount -t tmpfs -o "$disk,mode=755,nosuid" tmpfs "$root"
for path in $seen; do
    # With the options it has: a user may not take away those of the machine.
    show "rbind,$(findmnt -nT "$path" -o VFS-OPTIONS),ro,nosuid,nodev" "$path"
done
mkdir -p "$root/empty" "$root/proc" "$root/sys/class/net"
for path in $hidden; do
    if [ -d "$path" ]; then show bind "$path" "$root/empty"; else show bind "$path" /dev/null; fi
done
for device in null zero full random urandom; do
    show bind "/dev/$device"
done
for folder in tmp dev/shm lab; do
    mkdir -p "$root/$folder"
    chmod 1777 "$root/$folder"
done
mount -t proc -o nosuid,nodev,noexec proc "$root/proc"
# The loopback, over which ranks talk, is up.
"$python" -I -S -c 'import fcntl, socket, struct
fcntl.ioctl(socket.socket(), 0x8914, struct.pack("16sh14x", b"lo", 65))'
cd "$root"
exec chroot "$root" "$@"
