// A moment in a loop that looks at what another thread is about to change.
#pragma once

#if !defined(__x86_64__)
#include <thread>
#endif

namespace sluice {

// Does not give the CPU away where it can be helped: among threads that compute, who does waits for
// milliseconds.
inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

}  // namespace sluice
