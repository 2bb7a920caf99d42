# The first process of a namespace: `sh first_process.sh PLACE HOST …` mounts a file system in memory at PLACE. It tells
# its id as its parents see it, before it mounts a /proc of its own; then it takes care of every process that loses its
# parent. A signal from inside ends no first process of a namespace, but a shell takes SIGINT. If nobody is left to hear
# the id, it ends.
read -r pid rest </proc/self/stat
mount -t proc proc /proc && mount -t tmpfs tmpfs /dev/shm && mount -t tmpfs -o mode=755 tmpfs "$1" || exit 1
hostname "$2" && echo "$pid" || exit 1
exec >/dev/null 2>&1
trap '' INT
while :; do sleep infinity & wait $!; done
