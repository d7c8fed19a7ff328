// Leaving one stack and going on with another.
#pragma once

// switch_context(&here, there): keep the place we are at in `here`, go on at `there`.
// new_context(stack_top, entry): a place that begins at entry(), which must not return.

#if defined(__x86_64__) && !defined(LAGPU_SIM_UCONTEXT)

// The System V ABI has a call keep rbx, rbp and r12-r15; swapcontext would add a system call to
// that, and with it a factor of ten.
extern "C" void switch_context(void** here, void* there);
asm(R"(
.text
.p2align 4
switch_context:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  popq %rcx
  jmp *%rcx
)");

inline void* new_context(char* stack_top, void (*entry)()) {
  void** place = reinterpret_cast<void**>(stack_top);
  *--place = nullptr;  // entry finds the stack as if it had been called from here
  *--place = reinterpret_cast<void*>(entry);
  for (int saved = 0; saved < 6; ++saved) *--place = nullptr;
  return place;
}

#else

#include <ucontext.h>

// The context lives at the top of the stack it describes; the main stack's is static.
inline void switch_context(void** here, void* there) {
  static ucontext_t main_context;
  if (*here == nullptr) *here = &main_context;
  swapcontext(static_cast<ucontext_t*>(*here), static_cast<ucontext_t*>(there));
}

inline void* new_context(char* stack_top, void (*entry)()) {
  char* const place = stack_top - (sizeof(ucontext_t) + 63) / 64 * 64;
  ucontext_t* const context = reinterpret_cast<ucontext_t*>(place);
  getcontext(context);
  const unsigned long room = 60 * 1024;
  context->uc_stack.ss_sp = place - room;
  context->uc_stack.ss_size = room;
  context->uc_link = nullptr;
  makecontext(context, entry, 0);
  return context;
}

#endif
