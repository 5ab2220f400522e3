// SPDX-License-Identifier: MIT OR Apache-2.0
#include "umem/nofail.h"

#include "base/report.h"
#include "os/threads.h"
#include "os/yield.h"

#include <atomic>
#include <cstdlib>

namespace terrace::umem {
namespace {

constexpr int usual_status = 255;

std::atomic<umem_nofail_callback_t*> callback{nullptr};
std::atomic<const void*> leaving{nullptr};  // the thread that has called exit

// One thread does; the others wait for the end of the process. In the handlers that exit() runs there is no second way out.
[[noreturn]] void leave(int status) {
  const void* nobody = nullptr;
  const void* const me = os::this_thread();
  if (leaving.compare_exchange_strong(nobody, me, std::memory_order_relaxed)) std::exit(status);
  if (nobody == me) report_internal("an allocation that must not fail failed while the process ends for one that did");
  for (;;) os::sleep_briefly();
}

}  // namespace

void set_nofail_callback(umem_nofail_callback_t* f) noexcept { callback.store(f, std::memory_order_release); }

void ask_what_to_do() {
  umem_nofail_callback_t* const f = callback.load(std::memory_order_acquire);  // pairs with the store: what f relies on
  const int answer = f != nullptr ? f() : UMEM_CALLBACK_EXIT(usual_status);
  if (answer == UMEM_CALLBACK_RETRY) return;
  leave((answer & ~0xff) == UMEM_CALLBACK_EXIT(0) ? answer & 0xff : usual_status);
}

}  // namespace terrace::umem
