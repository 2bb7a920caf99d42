# Everything that runs in a cluster: `sh -ex start.sh FOLDER USER AS_USER NODE…`, as root on the login node and in the
# folder of the cluster's files, prints the process id of each node's first process. FOLDER has this script. Daemons go
# to the background by themselves; AS_USER, before a command, makes it that of USER.
folder=$1 user=$2 as_user=$3 state=$PWD
shift 3

mkdir log state ssh
cp "$folder/settings/slurm.conf" "$folder/settings/mpi.conf" .
cp "$folder/settings/ssh_config" "$folder/settings/sshd_config" ssh
echo "127.0.0.1 localhost" >hosts
echo "10.99.0.254 login" >>hosts
printf 'SlurmUser=%s\nSlurmdUser=%s\n' "$user" "$user" >>slurm.conf
for node in "$@"; do
    mkdir "spool.$node" "tmp.$node"
    echo "10.99.0.${node#node} $node" >>hosts
    # As on many clusters; nothing of it need be there.
    echo "NodeName=$node NodeAddr=10.99.0.${node#node} CPUs=64 RealMemory=512000 Gres=gpu:8" >>slurm.conf
done
names=$(echo "$@" | tr ' ' ,)
echo "PartitionName=lab Nodes=$names Default=YES DefaultTime=01:00:00 MaxTime=24:00:00" >>slurm.conf
# Slurm wants devices, and hands out their numbers; no user may make one, so that others are mounted there.
echo "Name=gpu File=$state/gpu[0-7]" >gres.conf
for gpu in gpu0 gpu1 gpu2 gpu3 gpu4 gpu5 gpu6 gpu7; do
    touch "$gpu"
    mount --bind /dev/null "$gpu"
done
# With control groups slurmd would ask systemd for one, which it cannot reach, and end. Before version 24.05 nothing can
# be disabled; there the old plugin, which nobody asks for anything, is as good.
case $($as_user slurmd -V) in
*" 1"[0-9].* | *" 2"[0-3].*) echo CgroupPlugin=cgroup/v1 >cgroup.conf ;;
*) echo CgroupPlugin=disabled >cgroup.conf ;;
esac
# A shell of level 2 does not read the user's ~/.bashrc, which sshd would let it read again for each command: it may
# print, and set another PATH than the shell that started the cluster.
echo "SetEnv \"PATH=$PATH\" SLURM_CONF=$state/slurm.conf SHLVL=2" >>ssh/sshd_config
for key in host_key user_key; do ssh-keygen -q -t ed25519 -N '' -C $key -f ssh/$key; done
(umask 077 && head -c 128 /dev/urandom >munge.key)
mount --bind hosts /etc/hosts
mount --bind ssh/ssh_config /etc/ssh/ssh_config
if [ -r /etc/shadow ]; then # by root: sshd refuses an account that is locked, as root's is on many systems
    (umask 077 && sed 's/^root:!/root:*/' /etc/shadow >shadow)
    mount --bind shadow /etc/shadow
fi

# Otherwise any end of a cable here would answer for the login node's address, and frames would pass the relay.
echo 1 >/proc/sys/net/ipv4/conf/all/arp_ignore
ip link set lo up
ip link add switch type bridge
ip link set switch up
ip link add to-login type veth peer name eth0
ip link set to-login master switch up
ip address add 10.99.0.254/24 dev eth0
ip link set eth0 up

$as_user munged --key-file="$state/munge.key" --pid-file="$state/munged.pid" --seed-file="$state/munge.seed" \
    --socket="$state/munge.sock" --log-file="$state/log/munged.log" --force
$as_user slurmctld

for node in "$@"; do
    address=10.99.0.${node#node}
    echo "$node,$address $(cat ssh/host_key.pub)" >>ssh/known_hosts
    setsid --fork unshare --mount --uts --net --pid --fork \
        sh "$folder/first_process.sh" /run "$node" 2>"log/$node.log" | {
        read -r pid
        echo "$pid"
        ip link add "to-$node" type veth peer name eth0 netns "$pid"
        ip link set "to-$node" master switch up
        # An ordinary user's sshd listens on port 22, too; it starts itself again, and needs its full path for that.
        nsenter --target "$pid" --mount --uts --net --pid -- sh -exc "
            ip link set lo up
            ip address add $address/24 dev eth0
            ip link set eth0 up
            echo 0 >/proc/sys/net/ipv4/ip_unprivileged_port_start
            mkdir /run/sshd
            $as_user slurmd
            $as_user $(command -v sshd) -f $state/ssh/sshd_config -E $state/log/sshd.$node.log"
    }
done
