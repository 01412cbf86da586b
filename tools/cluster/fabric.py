"""Fabric: hosts, links, switches and shapers of a plan, made and measured with iproute2.

The switches live in a network namespace of their own, so nothing is added to the machine's own
network, no name there can clash, and deleting the namespace deletes every link. Both ends of each
link are shaped: out of the host, and from the switch into the host.
"""

import glob
import json
import os
import shutil
import subprocess

import machine
import namespaces
from plan import QUEUE_BYTES, UPLINK_QUEUE_BYTES, Refused

TOOLS = ("ip", "tc", "bridge")
SLOW = 120.0  # seconds one iproute2 call may take
# Queues of the simulated switches hold 100 ms and more: tail probes and the 200 ms timer would
# resend what is only late. A sender keeps its window over a computation, as the papers' did.
HOST_SETTINGS = {
    "net/ipv4/tcp_early_retrans": "0",
    "net/ipv4/tcp_slow_start_after_idle": "0",
    # Else one socket fills the 4 MB of its own card's queue; what waits, waits in its buffer.
    "net/ipv4/tcp_limit_output_bytes": "262144",
    "net/ipv6/conf/all/disable_ipv6": "1",
    "net/ipv6/conf/default/disable_ipv6": "1",
}


def what_is_missing():
    for tool in TOOLS:
        if shutil.which(tool) is None:
            return f"the command '{tool}' is missing (package iproute2)"
    story = namespaces.what_is_missing()
    if story:
        return story

    def trial():
        namespaces.checked(namespaces.libc.unshare(namespaces.CLONE_NEWNET), "unshare")
        call("ip", "link add br0 type bridge\nlink add v0 type veth peer name v1\n")
        call("tc", "qdisc add dev v0 root tbf rate 100mbit burst 6200 limit 40000\n")

    story = namespaces.in_child(trial)
    return f"this kernel cannot build a simulated network: {story}" if story else ""


def call(tool, batch):
    """Runs one tool over a batch of its commands, in the namespace of the calling thread."""
    done = subprocess.run([tool, "-batch", "-"], input=batch, capture_output=True, text=True,
                          timeout=SLOW, check=False, close_fds=False)
    if done.returncode != 0:
        story = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
        raise Refused(f"{tool}: {story[:300]}", 1)


def ask(*command):
    """JSON answer of a tool, in the namespace of the calling thread."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=SLOW, check=True)
    return json.loads(done.stdout or "[]")


def shaper(plan, device, rate, queue=QUEUE_BYTES):
    return (f"qdisc replace dev {device} root tbf rate {int(rate)}bit burst {plan.burst(rate)}"
            f" limit {queue}\n")


def set_if_there(settings):
    for name, value in settings.items():
        if machine.read_setting(name) not in (None, value):
            try:
                machine.write_setting(name, value)
            except OSError as error:
                raise Refused(f"cannot set {name} to {value} in a host: {error.strerror}", 1)


def keep_order():
    """Packets that arrive at the cards of this namespace are handled by one processor, always.

    Else they wait in the queue of whichever processor sent them. Where one of these is busy they
    overtake each other by milliseconds, and TCP resends what it takes for lost, or drops what comes
    with a time stamp more than one older than the last (PAWS): no switch would do that. The same one
    for all cards: from one to the next a packet needs no interrupt between processors.
    """

    def steer():
        # sysfs shows the cards of the namespace that it was mounted from.
        checked, libc = namespaces.checked, namespaces.libc
        checked(libc.unshare(namespaces.CLONE_NEWNS), "unshare")
        private = namespaces.MS_REC | namespaces.MS_PRIVATE
        checked(libc.mount(b"none", b"/", None, private, None), "mount")
        checked(libc.mount(b"headway-cluster", b"/sys", b"sysfs", 0, None), "mount /sys")
        above, within = divmod(max(os.sched_getaffinity(0)), 32)
        mask = f"{1 << within:x}" + ",00000000" * above
        for file in glob.glob("/sys/class/net/*/queues/rx-0/rps_cpus"):
            with open(file, "w", encoding="ascii") as stream:
                stream.write(mask)

    story = namespaces.in_child(steer)
    if story:
        raise Refused(f"cannot keep a card's packets in order: {story}", 1)


def switch_batch(plan, folder):
    """Switches, their uplinks to a core, and a port for each host."""
    lines, shapers, forward = [], [], []
    # Addresses are known beforehand: no flooding, no ageing in the middle of a run.
    bridge = "type bridge stp_state 0 forward_delay 0 ageing_time 8640000"
    names = [f"sw{s}" for s in range(plan.switches)] + (["core"] if plan.switches > 1 else [])
    for name in names:
        lines += [f"link add {name} {bridge}", f"link set {name} up"]
    if plan.switches > 1:
        for s in range(plan.switches):
            lines.append(f"link add up{s} type veth peer name dn{s}")
            for device, switch in ((f"up{s}", f"sw{s}"), (f"dn{s}", "core")):
                lines.append(f"link set {device} master {switch} up")
                shapers.append(shaper(plan, device, plan.link_uplink_rate, UPLINK_QUEUE_BYTES))
    for h in range(plan.hosts):
        home = plan.switch_of(h)
        net = folder.net(plan.host_name(h))
        # One queue: a flow's packets stay in order as far as one processor handles them.
        lines.append(f"link add p{h} numtxqueues 1 numrxqueues 1 type veth"
                     f" peer name eth0 numtxqueues 1 numrxqueues 1 netns {net}")
        lines.append(f"link set p{h} master sw{home} up")
        shapers.append(shaper(plan, f"p{h}", plan.link_rate))
        forward.append(f"fdb replace {plan.mac(h)} dev p{h} master static")
        if plan.switches > 1:
            forward.append(f"fdb replace {plan.mac(h)} dev dn{home} master static")
            forward += [f"fdb replace {plan.mac(h)} dev up{s} master static"
                        for s in range(plan.switches) if s != home]
    return "\n".join(lines) + "\n", "".join(shapers), "\n".join(forward) + "\n"


def host_batch(plan, host):
    # TCP must build packets that fit into the bucket: cutting them in the shaper costs twice the
    # processor time.
    lines = ["link set lo up",
             f"link set eth0 address {plan.mac(host)} gso_max_size {plan.largest_packet}",
             "link set eth0 up",
             f"addr add {plan.address(host)}/16 dev eth0"]
    lines += [f"neigh replace {plan.address(h)} lladdr {plan.mac(h)} dev eth0 nud permanent"
              for h in range(plan.hosts) if h != host]
    return "\n".join(lines) + "\n"


def build(plan, folder, congestion):
    """Makes all of it. On an error the caller removes the folder, and with it whatever exists."""
    with open(folder.hosts_file, "w", encoding="ascii") as file:
        file.write(plan.hosts_file())
    namespaces.memory_file_system(folder.memory)
    namespaces.make(folder.fabric, None, "the switches")
    for h in range(plan.hosts):
        name = plan.host_name(h)
        namespaces.make(folder.net(name), folder.uts(name), name)
        os.mkdir(folder.shm(name))
        os.chmod(folder.shm(name), 0o1777)
    links, shapers, forward = switch_batch(plan, folder)
    with namespaces.inside(folder.fabric):
        set_if_there({"net/bridge/bridge-nf-call-iptables": "0",
                      "net/ipv6/conf/all/disable_ipv6": "1",
                      "net/ipv6/conf/default/disable_ipv6": "1"})
        call("ip", links)
        call("tc", shapers)
        call("bridge", forward)
        keep_order()
    wanted = dict(HOST_SETTINGS)
    wanted["net/ipv4/tcp_rto_min_us"] = str(int(1_000_000 * plan.dilation))
    wanted["net/ipv4/tcp_congestion_control"] = congestion
    for h in range(plan.hosts):
        with namespaces.inside(folder.net(plan.host_name(h))):
            set_if_there(wanted)
            call("ip", host_batch(plan, h))
            call("tc", shaper(plan, "eth0", plan.link_rate))
            keep_order()
