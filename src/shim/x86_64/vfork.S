// SPDX-License-Identifier: MIT OR Apache-2.0
// pid_t vfork(void), with the core level closed to parent and child while the child exists. The child returns first and overwrites
// the stack below its frame, so the return address is kept in a register across the system call, and what else is needed afterwards
// is pushed again from it. So is what terrace_enter_vfork() gave (eax), for terrace_leave_vfork(). It may also want the child's
// tid to be written somewhere (rdx): then the call is clone, with the flags that make it vfork.
        .text
        .globl vfork
        .type vfork, @function
        .balign 16
vfork:
        subq $8, %rsp
        call terrace_enter_vfork
        addq $8, %rsp
        movq %rax, %r9
        popq %r8                        // the return address: r8 and r9 survive the system call
        movl $58, %eax                  // SYS_vfork
        movq %rdx, %r10
        testq %rdx, %rdx
        jz 3f
        movl $0x01204111, %edi          // CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | CLONE_VM | CLONE_VFORK | SIGCHLD
        xorl %esi, %esi
        xorl %edx, %edx
        movl $56, %eax                  // SYS_clone
3:      syscall
        pushq %r8
        testl %eax, %eax
        jz 1f                           // the child goes on with the level closed, until it has another program or is gone
        pushq %rax
        movq %r9, %rdi
        movq %r10, %rsi
        movslq %eax, %rdx
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
