/* The first instructions: a stack, zeros for variables, interrupts, main. */
.section .start, "ax"
.global _start
_start:
  j begin
.balign 32 /* where this processor looks for its handler unless mtvec is written */
  j handler
begin:
  la sp, stack_top
  la a0, handler
  csrw mtvec, a0
  la a0, bss_begin
  la a1, bss_end
clear:
  bgeu a0, a1, cleared
  sw zero, 0(a0)
  addi a0, a0, 4
  j clear
cleared:
  call main
stop:
  j stop
