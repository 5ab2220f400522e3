// SPDX-License-Identifier: MIT OR Apache-2.0
// pid_t vfork(void), with the core level closed while the child exists. The child returns first and overwrites the stack below
// its frame, so the return address is kept in a register across the system call, and what else is needed afterwards is pushed
// again from it. So is what terrace_enter_vfork() gave, for terrace_leave_vfork().
        .text
        .globl vfork
        .type vfork, @function
        .balign 16
vfork:
        subq $8, %rsp
        call terrace_enter_vfork
        addq $8, %rsp
        movl %eax, %esi
        popq %rdi                       // the return address: rdi and rsi survive the system call
        movl $58, %eax                  // SYS_vfork
        syscall
        pushq %rdi
        testl %eax, %eax
        jz 1f                           // the child goes on with the level closed, until it has another program or is gone
        pushq %rax
        movl %esi, %edi
        call terrace_leave_vfork
        popq %rax
        cmpl $-4095, %eax
        jae 2f
1:      ret
2:      negl %eax
        pushq %rax
        call __errno_location@PLT
        popq %rcx
        movl %ecx, (%rax)
        movl $-1, %eax
        ret
        .size vfork, . - vfork
        .globl __vfork
        .type __vfork, @function
        .set __vfork, vfork
        .section .note.GNU-stack, "", @progbits
