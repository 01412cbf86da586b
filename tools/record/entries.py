"""librecorder's entries (entries.S): each leads where its slot says, and asks a function of librecorder for that at its
first call. A part of generate.py.
"""

from __future__ import annotations

# Asks a function of librecorder where the entry leads from then on, and goes there with all arguments as they were.
X86 = """
  .type ask_{answer}, @function
ask_{answer}: /* the entry's number is on the stack, above the return address into the program */
  .cfi_startproc
  .cfi_def_cfa_offset 16
  push %rbp
  .cfi_def_cfa_offset 24
  .cfi_offset rbp, -24
  mov %rsp, %rbp
  .cfi_def_cfa_register rbp
  push %rdi
  push %rsi
  push %rdx
  push %rcx
  push %r8
  push %r9
  push %rax
  push %r10
  and $-16, %rsp
  mov 8(%rbp), %rdi
  call {answer}
  mov %rax, %r11
  lea -64(%rbp), %rsp
  pop %r10
  pop %rax
  pop %r9
  pop %r8
  pop %rcx
  pop %rdx
  pop %rsi
  pop %rdi
  pop %rbp
  .cfi_def_cfa rsp, 16
  add $8, %rsp
  .cfi_def_cfa_offset 8
  jmp *%r11
  .cfi_endproc
  .size ask_{answer}, . - ask_{answer}
"""
ARM = """
  .type ask_{answer}, %function
ask_{answer}: /* the entry's number is in x17 */
  .cfi_startproc
  stp x29, x30, [sp, #-96]!
  .cfi_def_cfa_offset 96
  .cfi_offset 29, -96
  .cfi_offset 30, -88
  mov x29, sp
  stp x0, x1, [sp, #16]
  stp x2, x3, [sp, #32]
  stp x4, x5, [sp, #48]
  stp x6, x7, [sp, #64]
  str x17, [sp, #80]
  mov x0, x17
  bl {answer}
  mov x16, x0
  ldp x0, x1, [sp, #16]
  ldp x2, x3, [sp, #32]
  ldp x4, x5, [sp, #48]
  ldp x6, x7, [sp, #64]
  ldr x17, [sp, #80]
  ldp x29, x30, [sp], #96
  .cfi_def_cfa_offset 0
  .cfi_restore 29
  .cfi_restore 30
  br x16
  .cfi_endproc
  .size ask_{answer}, . - ask_{answer}
"""
# Where a call from Fortran came from is kept; in the registers that no argument is in.
KEEP_CALLER_X86 = [
    "  mov (%rsp), %r11", "  mov record_fortran_caller@GOTTPOFF(%rip), %rax", "  mov %r11, %fs:(%rax)",
]  # fmt: skip
KEEP_CALLER_ARM = [
    "  adrp x16, :gottprel:record_fortran_caller", "  ldr x16, [x16, #:gottprel_lo12:record_fortran_caller]",
    "  mrs x17, tpidr_el0", "  str x30, [x17, x16]",
]  # fmt: skip
FORTRAN_FORMS = ("_", "_f08_", "_f08ts_")  # fortran.c has the same


def entries_x86(names: list[str], slots: str, answer: str, before: list[str]) -> list[str]:
    out = [X86.format(answer=answer)]
    for number, name in enumerate(names):
        out += [
            f"  .globl {name}", f"  .type {name}, @function", "  .p2align 4", f"{name}:", *before,
            f"  jmp *{slots}+{8 * number}(%rip)", f"ask_{name}:", f"  push ${number}", f"  jmp ask_{answer}",
            f"  .size {name}, . - {name}",
        ]  # fmt: skip
    return out


def entries_arm(names: list[str], slots: str, answer: str, before: list[str]) -> list[str]:
    out = [ARM.format(answer=answer)]
    for number, name in enumerate(names):
        out += [
            f"  .globl {name}", f"  .type {name}, %function", "  .p2align 4", f"{name}:", *before,
            f"  adrp x16, {slots}+{8 * number}", f"  ldr x16, [x16, #:lo12:{slots}+{8 * number}]",
            "  br x16", f"ask_{name}:", f"  mov x17, #{number}", f"  b ask_{answer}", f"  .size {name}, . - {name}",
        ]  # fmt: skip
    return out


def make_entries(notice: str, every: list[str], more: list[str]) -> str:
    """`every`: names of functions that have entries for Fortran, too."""
    c = [*every, *more]
    fortran = [f"{name.lower()}{form}" for name in every for form in FORTRAN_FORMS]
    tables = ((c, "record_slots", "record_resolve"), (fortran, "record_fortran_slots", "record_resolve_fortran"))
    out = [f"/* {notice} */", "  .section .note.GNU-stack,\"\",%progbits", "  .text", "  .p2align 4"]
    out += ["#if defined(__x86_64__)", *entries_x86(*tables[0], []), *entries_x86(*tables[1], KEEP_CALLER_X86)]
    out += ["#elif defined(__aarch64__)", *entries_arm(*tables[0], []), *entries_arm(*tables[1], KEEP_CALLER_ARM)]
    out += ["#endif", "  .data", "  .p2align 3"]
    for names, slots, _answer in tables:
        out += [f"  .globl {slots}", f"  .hidden {slots}", f"{slots}:", *(f"  .quad ask_{name}" for name in names)]
    return "\n".join([*out, ""])
