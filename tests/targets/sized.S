// Functions whose tables do not agree about where they end; main calls them and exits with 0.

  .text
  .macro begin name
  .globl \name
  .type \name, @function
\name:
  .cfi_startproc
  .endm

// The symbol leaves out the second ret, the unwind table does not.
  .p2align 4
  begin short_symbol
  test %edi, %edi
  jz 1f
  mov $1, %eax
  ret
.Lshort_end:
1:
  mov $2, %eax
  ret
  .cfi_endproc
  .size short_symbol, .Lshort_end - short_symbol

// The other way round.
  .p2align 4
  begin short_frame
  test %edi, %edi
  jz 1f
  mov $3, %eax
  ret
  .cfi_endproc
1:
  mov $4, %eax
  ret
  .size short_frame, . - short_frame

// The symbol reaches into what follows, which is another function.
  .p2align 4
  begin long_symbol
  mov $5, %eax
  ret
  .cfi_endproc
  .size long_symbol, .Lneighbour_end - long_symbol

  begin neighbour
  mov $6, %eax
  ret
  .cfi_endproc
.Lneighbour_end:
  .size neighbour, . - neighbour

// Behind what the unwind table has, the symbol has bytes that are no instruction.
  .p2align 4
  begin with_data
  mov $7, %eax
  ret
  .cfi_endproc
  .byte 0x06, 0x07, 0x0e, 0x16, 0x17, 0x1e
  .size with_data, . - with_data

// Ends in the middle of nowhere: it runs on into the next one.
  .p2align 4
  begin runs_on
  test %edi, %edi
  jnz 1f
  ret
1:
  .cfi_endproc
  .size runs_on, . - runs_on
  begin run_into
  mov $8, %eax
  ret
  .cfi_endproc
  .size run_into, . - run_into

// Its ret goes to where its argument says.
  .p2align 4
  begin goes_elsewhere
  test %rdi, %rdi
  jz 1f
  push %rdi
  .cfi_adjust_cfa_offset 8
  ret
1:
  .cfi_adjust_cfa_offset -8
  xor %eax, %eax
  ret
  .cfi_endproc
  .size goes_elsewhere, . - goes_elsewhere

  .p2align 4
  begin main
  push %rbx
  .cfi_adjust_cfa_offset 8
  xor %ebx, %ebx
  .irp function, short_symbol, short_frame, long_symbol, neighbour, with_data, runs_on
  mov $1, %edi
  call \function
  add %eax, %ebx
  xor %edi, %edi
  xor %eax, %eax
  call \function
  add %eax, %ebx
  .endr
  xor %edi, %edi
  call goes_elsewhere
  // 1+2 + 3+4 + 5+5 + 6+6 + 7+7 + 8+0
  lea -54(%rbx), %eax
  pop %rbx
  .cfi_adjust_cfa_offset -8
  ret
  .cfi_endproc
  .size main, . - main

  .section .note.GNU-stack, "", @progbits
