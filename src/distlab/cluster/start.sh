# Everything that runs in a cluster: `sh -ex start.sh FIRST_PROCESS AS_USER NODE…`, as root on the login node and in the
# folder of the cluster's files, prints the process id of each node's first process. Daemons go to the background by
# themselves; AS_USER, before a command, makes it the user's.
first_process=$1 as_user=$2 state=$PWD
shift 2

for gpu in gpu*; do mount --bind /dev/null "$gpu"; done
for key in host_key user_key; do ssh-keygen -q -t ed25519 -N '' -C $key -f ssh/$key; done
mount --bind hosts /etc/hosts
mount --bind ssh/ssh_config /etc/ssh/ssh_config
if [ -e shadow ]; then mount --bind shadow /etc/shadow; fi

address() { sed -n "s/ $1\$//p" hosts; }
# Otherwise any end of a cable here would answer for the login node's address, and frames would pass the relay.
echo 1 >/proc/sys/net/ipv4/conf/all/arp_ignore
ip link set lo up
ip link add switch type bridge
ip link set switch up
ip link add to-login type veth peer name eth0
ip link set to-login master switch up
ip address add "$(address login)/24" dev eth0
ip link set eth0 up

$as_user munged --key-file="$state/munge.key" --pid-file="$state/munged.pid" --seed-file="$state/munge.seed" \
    --socket="$state/munge.sock" --log-file="$state/log/munged.log" --force
$as_user slurmctld

for node in "$@"; do
    echo "$node,$(address "$node") $(cat ssh/host_key.pub)" >>ssh/known_hosts
    unshare="unshare --mount --uts --net --pid --fork"
    setsid --fork $unshare sh "$first_process" /run "$node" 2>"log/$node.log" | {
        read -r pid
        echo "$pid"
        ip link add "to-$node" type veth peer name eth0 netns "$pid"
        ip link set "to-$node" master switch up
        # An ordinary user's sshd listens on port 22, too; it starts itself again, and needs its full path for that.
        nsenter --target "$pid" --mount --uts --net --pid -- sh -exc "
            ip link set lo up
            ip address add $(address "$node")/24 dev eth0
            ip link set eth0 up
            echo 0 >/proc/sys/net/ipv4/ip_unprivileged_port_start
            mkdir /run/sshd
            $as_user slurmd
            $as_user $(command -v sshd) -f $state/ssh/sshd_config -E $state/log/sshd.$node.log"
    }
done
