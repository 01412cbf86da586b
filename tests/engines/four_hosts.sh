#!/bin/bash
# four_hosts.sh slurm|sshd|agent COMMAND...: a login machine "hub" and four machines h0 to h3 on this one, joined by a
# bridge; each has a network, a host name and a /tmp of its own. Runs COMMAND on the hub, then ends everything: all of it
# lives in namespaces, and goes with them; the folder below /var/tmp is left behind by kill -9 alone.
#
#   slurm   a real Slurm: slurmctld here, a slurmd on each machine (slurm.conf below)
#   sshd    an sshd on each machine, with keys of its own; "ssh" is first on the path
#   agent   the same without ssh: "ssh HOST COMMAND" enters the machine's namespaces
#
# The libpmix of scripts/slurm-pmix.sh, if it is there, lies where Slurm's plugin looks for it.
#
# As root. 77: namespaces or packages are missing, and a line says which.
set -u
kind=$1
shift
hosts=4

skip() {
  echo "$1"
  exit 77
}

if [ -z "${INSIDE_FOUR_HOSTS:-}" ]; then
  [ "$(id -u)" = 0 ] || skip "four machines on one need root"
  for tool in ip unshare nsenter setpriv; do
    command -v $tool >/dev/null || skip "there is no $tool (iproute2, util-linux)"
  done
  case $kind in
    slurm) tools="slurmctld slurmd srun sinfo" ;;
    sshd) tools="sshd ssh ssh-keygen" ;;
    agent) tools="" ;;
    *) skip "no kind of machines is called $kind" ;;
  esac
  PATH=$PATH:/usr/sbin:/sbin
  for tool in $tools; do
    command -v $tool >/dev/null ||
      skip "there is no $tool (slurmctld slurmd slurm-client slurm-wlm-basic-plugins; openssh-server)"
  done
  export INSIDE_FOUR_HOSTS=1
  # Not below /tmp, which each machine has anew.
  FOUR_HOSTS=$(mktemp -d -p /var/tmp headway-four-hosts-XXXXXX) || skip "nothing can be written below /var/tmp"
  export FOUR_HOSTS
  trap 'rm -rf "$FOUR_HOSTS"' EXIT
  unshare --mount --net --uts --pid --fork true 2>/dev/null || skip "namespaces are not allowed here"
  # Whatever ends this shell, a test's time limit for example, ends them.
  setpriv --pdeathsig KILL unshare --mount --net --uts --pid --fork --kill-child --mount-proc "$0" "$kind" "$@"
  exit
fi

# Before the machines are made, which see it then, too.
lay_pmix() {
  for folder in "${HEADWAY_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/headway}"/slurm-pmix/usr/lib/*; do
    [ -d "$folder" ] || continue
    system=/usr/lib/${folder##*/}
    mount -t overlay overlay -o "lowerdir=$folder:$system" "$system" || echo "libpmix cannot be laid over $system" >&2
  done
}

D=$FOUR_HOSTS
tree=$(cd "$(dirname "$0")/../.." && pwd -P)
set -e
mount --make-rprivate /
[ "$kind" != slurm ] || lay_pmix
mkdir -p /run/netns "$D"/{bin,log,state,spool}
mount -t tmpfs tmpfs /run/netns
hostname hub
{
  echo 127.0.0.1 localhost
  echo 10.79.0.254 hub
  for i in $(seq 0 $((hosts - 1))); do echo "10.79.0.$((i + 1)) h$i"; done
} >"$D/hosts"
mount --bind "$D/hosts" /etc/hosts
ip link set lo up
ip link add br0 type bridge
ip addr add 10.79.0.254/24 dev br0
ip link set br0 up

# Enters a machine: its network, and the namespaces of the process that keeps it. (Not `ip netns exec`: that mounts a
# /sys without control groups, and slurmd ends.)
cat >"$D/bin/on" <<ON
#!/bin/sh
host=\$1
shift
exec nsenter --target "\$(cat $D/\$host.pid)" --net --uts --mount --ipc -- "\$@"
ON
chmod +x "$D/bin/on"

for i in $(seq 0 $((hosts - 1))); do
  ip netns add h$i
  ip link add v$i type veth peer name eth0 netns h$i
  ip link set v$i master br0 up
  ip -n h$i addr add 10.79.0.$((i + 1))/24 dev eth0
  ip -n h$i link set eth0 up
  ip -n h$i link set lo up
  mkdir -p "$D/tmp.h$i" "$D/spool/h$i"
  # A tree that lies below /tmp is seen on each machine all the same.
  if [ "${tree#/tmp/}" != "$tree" ]; then
    mkdir -p "$D/tmp.h$i/${tree#/tmp/}"
    mount --bind "$tree" "$D/tmp.h$i/${tree#/tmp/}"
  fi
  nsenter --net=/run/netns/h$i unshare --mount --uts --ipc sh -c \
    "hostname h$i; mount --rbind $D/tmp.h$i /tmp; echo \$\$ >$D/h$i.new; mv $D/h$i.new $D/h$i.pid; exec sleep infinity" &
done
for i in $(seq 0 $((hosts - 1))); do
  for _ in $(seq 100); do
    [ -e "$D/h$i.pid" ] && break
    sleep 0.05
  done
  [ -e "$D/h$i.pid" ] || skip "machine h$i was not made"
done

start_slurm() {
  cat >"$D/slurm.conf" <<CONF
ClusterName=test
SlurmctldHost=hub(10.79.0.254)
SlurmUser=root
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
ReturnToService=2
SlurmctldPidFile=$D/ctld.pid
SlurmdPidFile=$D/%n.slurmd
SlurmdSpoolDir=$D/spool/%n
StateSaveLocation=$D/state
SlurmctldLogFile=$D/log/ctld
SlurmdLogFile=$D/log/%n
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerType=sched/builtin
KillWait=5
MinJobAge=2
NodeName=h[0-$((hosts - 1))] CPUs=16 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
  export SLURM_CONF=$D/slurm.conf
  slurmctld -D >"$D/log/ctld.out" 2>&1 &
  for i in $(seq 0 $((hosts - 1))); do
    "$D/bin/on" h$i slurmd -D -N h$i >"$D/log/h$i.out" 2>&1 &
  done
  for _ in $(seq 200); do
    [ "$(sinfo -h -t idle -o %D 2>/dev/null)" = "$hosts" ] && return
    sleep 0.1
  done
  tail -n 5 "$D"/log/*
  echo "Slurm did not come up"
  exit 1
}

start_sshd() {
  mkdir -p /run/sshd "$D/keys" "$D/home"
  ssh-keygen -q -t ed25519 -N "" -f "$D/keys/host"
  ssh-keygen -q -t ed25519 -N "" -f "$D/keys/user"
  cp "$D/keys/user.pub" "$D/keys/authorized"
  # An empty HOME: what somebody's .bashrc does is not tried here, and may take long.
  for i in $(seq 0 $((hosts - 1))); do
    "$D/bin/on" h$i "$(command -v sshd)" -D -f /dev/null -o HostKey="$D/keys/host" -o PidFile=none -o UsePAM=no \
      -o AuthorizedKeysFile="$D/keys/authorized" -o StrictModes=no -o PermitRootLogin=yes -o MaxStartups=1000 \
      -o SetEnv=HOME="$D/home" \
      >"$D/log/sshd.h$i" 2>&1 &
  done
  real=$(command -v ssh)
  cat >"$D/bin/ssh" <<SSH
#!/bin/sh
exec $real -i $D/keys/user -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o LogLevel=ERROR "\$@"
SSH
  chmod +x "$D/bin/ssh"
  for i in $(seq 0 $((hosts - 1))); do
    for _ in $(seq 100); do
      "$D/bin/ssh" h$i true 2>/dev/null && break
      sleep 0.1
    done
    "$D/bin/ssh" h$i true || exit 1
  done
}

# What launchers call as "ssh [OPTIONS] HOST COMMAND...": the other side has nothing of our environment, and gives the
# words to a shell, as sshd does.
start_agent() {
  cat >"$D/bin/ssh" <<SSH
#!/bin/sh
while :; do
  case "\$1" in
    -o | -l | -p | -i | -F) shift 2 ;;
    -*) shift ;;
    *) break ;;
  esac
done
host=\$1
shift
exec $D/bin/on "\$host" env -i HOME="\$HOME" PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin sh -c "cd / && \$*"
SSH
  chmod +x "$D/bin/ssh"
}

case $kind in
  slurm) start_slurm ;;
  sshd) start_sshd ;;
  agent) start_agent ;;
esac
export PATH=$D/bin:$PATH
set +e
"$@"
code=$?
kill $(jobs -p) 2>/dev/null
exit $code
