"""The PMI-1 server as seen by a client that is not ours, and by no client at all."""

from harness import case, equal, expect, python, run

START = "import pmi_rank\np = pmi_rank.Pmi()\n"
INSIDE = START + "p.init()\n"


@case
def pmi_verbs():
    code = INSIDE + """
from pmi_rank import RANK, SIZE
maxes = p.ask('cmd=get_maxes')
assert int(maxes['keylen_max']) >= 64 and int(maxes['vallen_max']) >= 1024, maxes
assert p.ask('cmd=get_universe_size')['size'] == str(SIZE)
assert p.ask('cmd=get_appnum')['appnum'] == '0'
assert p.get('PMI_process_mapping')['value'] == f'(vector,(0,1,{SIZE}))'
assert p.get('missing')['rc'] == '-1'
assert p.put(f'key{RANK}', f'=a=b,{RANK}')['rc'] == '0'
assert p.put(f'key{RANK}', 'again')['rc'] == '-1'
assert p.put('k' * 64, 'x')['rc'] == '-1'
assert p.put('long' + str(RANK), 'v' * 1023)['rc'] == '0'
assert p.put('longer' + str(RANK), 'v' * 1024)['rc'] == '-1'
assert p.ask('cmd=get kvsname=other key=key0')['rc'] == '-1'
for _ in range(100): p.barrier()
for r in range(SIZE):
    assert p.get(f'key{r}')['value'] == f'=a=b,{r}'
    assert p.get(f'long{r}')['value'] == 'v' * 1023
if RANK == 0:
    assert p.ask('cmd=publish_name service=s port=here')['rc'] == '0'
    assert p.ask('cmd=publish_name service=s port=there')['rc'] == '-1'
p.barrier()
assert p.ask('cmd=lookup_name service=s')['port'] == 'here'
assert p.ask('cmd=lookup_name service=t')['rc'] == '-1'
p.barrier()
if RANK == 1:
    assert p.ask('cmd=unpublish_name service=s')['rc'] == '0'
    assert p.ask('cmd=unpublish_name service=s')['rc'] == '-1'
    reply = p.ask('mcmd=spawn\\nnprocs=2\\nexecname=x\\nany thing\\nendcmd')
    assert reply['cmd'] == 'spawn_result' and reply['rc'] == '-1', reply
p.barrier()
p.finalize()
print('fine')
"""
    result = run("-n", "5", *python(code))
    equal((result.code, result.out), (0, "fine\n" * 5), "all verbs", result)


@case
def many_questions_at_once():
    """Answers that the rank is slow to read wait, and none is lost."""
    code = INSIDE + """
p.put('big' + str(pmi_rank.RANK), 'x' * 1000)
p.barrier()
name = p.name
import threading
count = 3000
def ask():
    for i in range(count): p.send(f'cmd=get kvsname={name} key=big0')
asker = threading.Thread(target=ask)
asker.start()
time.sleep(0.5)
for i in range(count): assert p.answer()['value'] == 'x' * 1000
asker.join()
p.finalize()
print('fine')
"""
    result = run("-n", "2", *python(code))
    equal((result.code, result.out), (0, "fine\n" * 2), "all answers", result)


def garbage(setup, bytes_literal):
    code = (START + setup + f"if pmi_rank.RANK == 1: p.socket.sendall({bytes_literal})\n"
            "time.sleep(1000)\n")
    result = run("-n", "3", *python(code))
    equal(result.code, 1, f"exit code after {bytes_literal}", result)
    equal(len(result.own_lines), 1, "lines", result)
    expect("rank 1 (" in result.err and "PMI_FD" in result.err, "who and what", result)
    expect(result.seconds < 10, "no hang", result)


@case
def garbage_on_the_descriptor():
    garbage("", "b'hello world\\n'")
    garbage("p.init()\n", "bytes(range(256)) * 3")
    garbage("p.init()\n", "b'cmd=nonsense\\n'")
    garbage("p.init()\n", "b'\\n'")
    garbage("p.init()\n", "b'cmd\\n'")
    garbage("p.init()\n", "b'x' * 100000")
    garbage("", "b'cmd=barrier_in\\n'")


@case
def half_a_line_is_no_harm():
    code = INSIDE + """
for c in 'cmd=get_appnum\\n': p.socket.sendall(c.encode()); time.sleep(0.002)
assert p.answer()['appnum'] == '0'
p.finalize()
p.socket.sendall(b'cmd=ge')
print('fine')
"""
    result = run("-n", "2", *python(code))
    equal((result.code, result.out), (0, "fine\n" * 2), "output", result)


@case
def version_that_we_do_not_speak():
    code = START + """
reply = p.ask('cmd=init pmi_version=2 pmi_subversion=0')
assert reply['rc'] == '-1' and reply['pmi_version'] == '1', reply
p.init()
p.finalize()
"""
    equal(run("-n", "2", *python(code)).code, 0, "exit code")
