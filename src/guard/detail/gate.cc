#include "guard/detail/gate.h"

#if defined(__x86_64__)
// The restorer's bytes are what debuggers and unwinders look for; the nop keeps its predecessor out
// of their search. The return address waits under the red zone, since the call takes RCX and R11.
__asm__(R"(
  .pushsection .text.headway_gate, "ax", @progbits
  .balign 64
  .globl headway_gate_begin, headway_gate_end, headway_gate_restorer
  .globl headway_gate_call, headway_gate_leave
  .hidden headway_gate_begin, headway_gate_end, headway_gate_restorer
  .hidden headway_gate_call, headway_gate_leave
headway_gate_begin:
  nop
  .type headway_gate_restorer, @function
headway_gate_restorer:
  movq $15, %rax
  syscall
  ud2
  .size headway_gate_restorer, . - headway_gate_restorer
  .type headway_gate_leave, @function
headway_gate_leave:
  syscall
  ud2
  .size headway_gate_leave, . - headway_gate_leave
  .balign 16
  .type headway_gate_call, @function
headway_gate_call:
  .cfi_startproc
  .cfi_def_cfa rsp, 0
  .cfi_register rip, rcx
  leaq -128(%rsp), %rsp
  .cfi_def_cfa_offset 128
  pushq %rcx
  .cfi_def_cfa_offset 136
  .cfi_offset rip, -136
  syscall
  popq %rcx
  .cfi_def_cfa_offset 128
  .cfi_register rip, rcx
  leaq 128(%rsp), %rsp
  .cfi_def_cfa_offset 0
  jmpq *%rcx
  .cfi_endproc
  .size headway_gate_call, . - headway_gate_call
headway_gate_end:
  .popsection
)");
#endif
