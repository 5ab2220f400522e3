// SPDX-License-Identifier: MIT OR Apache-2.0
#include "check/checker.h"

#include "base/report.h"
#include "check/zones.h"
#include "os/fault.h"

#include <bit>

namespace terrace::check {
namespace {

constinit GuardedPool* watched = nullptr;  // set once: handlers have no argument for it

void look_at_fault(const os::Fault& fault) noexcept { watched->report_fault(fault); }
void write_details(const void* p) noexcept { watched->describe(p); }

ReportedBlock reported(const Block& b) noexcept { return {.start = b.start, .size = b.size}; }

void check_zones(const Block& b, const char* function) noexcept {
  const Damage damage = damage_of(b.start, b.size, b.align());
  if (damage != Damage::none) report_out_of_bounds(function, reported(b), damage == Damage::beyond);
}

void check_claim(const Block& b, const Claim& claim) noexcept {
  if (claim.has_size && claim.size != b.size) report_wrong_size(claim.function, reported(b), claim.size);
  if (claim.align > smallest_zone && claim.align != b.align())
    report_wrong_alignment(claim.function, b.start, b.align(), claim.align);
}

}  // namespace

void Checker::open(const Options& options, const Source& source) noexcept {
  if (!options.on || !registry_.open() || !quarantine_.open(options.quarantine)) return;
  source_ = source;
  has_pool_ = options.sample != 0 && pool_.open(options.sample);
  if (has_pool_) {
    watched = &pool_;
    set_report_details(write_details);
    os::watch_faults(look_at_fault);
  }
  on_ = true;
}

void* Checker::allocate(std::size_t size, std::size_t align) noexcept {
  align = max_of(align, smallest_zone);
  if (has_pool_) {
    if (void* const p = pool_.allocate(size, align)) {
      const os::LockGuard guard(pool_.mutex());
      os::watch_faults(look_at_fault);  // a program that has set a handler since
      return p;
    }
  }
  return allocate_beside_zones(size, align);
}

void* Checker::allocate_beside_zones(std::size_t size, std::size_t align) noexcept {
  std::size_t total = 0;
  if (__builtin_add_overflow(size, front_of(align) + looked_at + smallest_zone, &total)) return nullptr;
  total = front_of(align) + size + back_of(size);
  auto* const raw = static_cast<std::byte*>(source_.allocate(total, align));
  if (raw == nullptr) return nullptr;
  Block b;
  b.start = raw + front_of(align);
  b.size = size;
  b.align_log2 = static_cast<std::uint8_t>(std::countr_zero(align));
  fill_zones(b.start, size, align);
  if (registry_.add(b)) return b.start;
  source_.release(raw);
  return nullptr;
}

// No block begins there: inside of one, where one was, or nowhere.
void Checker::report_unknown(const char* function, const void* p) noexcept {
  Block b;
  const auto* const at = static_cast<const std::byte*>(p);
  if (registry_.find_any(b, [at](const Block& other) {
        return other.state == State::live && at >= other.start && at < other.start + other.size;
      }))
    report_interior_pointer(function, p, reported(b));
  if (source_.is_free_again(p)) report_double_free(function, p);
  report_invalid_pointer(function, p);
}

// The live block that starts at p, found to be as the program should have left it. Ends the process if there is none.
Block Checker::live_block(const void* p, const Claim& claim, bool free_it) noexcept {
  Block b;
  // Only one of two threads that free at once finds it live.
  State before = State::live;
  const bool known = registry_.find(p, b, [&](Block& own) {
    before = own.state;
    if (free_it) own.state = State::freed;
  });
  if (!known) report_unknown(claim.function, p);
  if (before == State::freed) report_double_free(free_it ? "free" : claim.function, p);
  check_claim(b, claim);
  check_zones(b, claim.function);
  return b;
}

void Checker::free(void* p, const Claim& claim) noexcept {
  if (p == nullptr) return;
  if (has_pool_ && pool_.contains(p)) {
    const GuardedPool::Block b = pool_.look(p, "free");
    Block same;
    same.start = static_cast<std::byte*>(p);
    same.size = b.size;
    same.align_log2 = static_cast<std::uint8_t>(std::countr_zero(b.align));
    check_claim(same, claim);
    return pool_.free(p, "free");
  }
  const Block b = live_block(p, claim, true);
  if (!quarantine_.takes(b.size)) return give_back(b);
  std::memset(b.start, freed_byte, b.size);
  if (!quarantine_.put({.start = b.start, .size = b.size})) return give_back(b);
  for (Quarantine::Freed old = quarantine_.evict(); old.start != nullptr; old = quarantine_.evict())
    leave_quarantine(old, "free");
}

void Checker::leave_quarantine(const Quarantine::Freed& freed, const char* function) noexcept {
  if (!holds_only(freed.start, freed.size, freed_byte)) report_write_after_free(function, freed.start);
  Block b;
  if (!registry_.find(freed.start, b, [](Block&) {})) report_internal("a block in quarantine is not registered");
  check_zones(b, function);
  give_back(b);
}

void Checker::give_back(const Block& b) noexcept {
  registry_.remove(b.start);
  source_.release(b.start - front_of(b.align()));
}

// Always to another place: who kept the old pointer is found.
void* Checker::reallocate(void* p, std::size_t size) noexcept {
  const std::size_t have = usable_size(p, "realloc");
  void* const fresh = allocate(size, smallest_zone);
  if (fresh == nullptr) return nullptr;
  std::memcpy(fresh, p, min_of(have, size));
  free(p, {.function = "realloc"});
  return fresh;
}

std::size_t Checker::usable_size(const void* p, const char* function) noexcept {
  if (p == nullptr) return 0;
  if (has_pool_ && pool_.contains(p)) return pool_.look(p, function).size;
  return live_block(p, {.function = function}, false).size;
}

// By [R1] and [R2] the zones of what is in the table hold their byte, whatever other threads do meanwhile; a block in the
// quarantine is filled before it is put there.
void Checker::sweep(const char* function) noexcept {
  Block damaged;
  if (registry_.find_any(damaged, [](const Block& b) { return damage_of(b.start, b.size, b.align()) != Damage::none; }))
    check_zones(damaged, function);
  Quarantine::Freed written;
  if (quarantine_.find(written, [](const Quarantine::Freed& f) { return !holds_only(f.start, f.size, freed_byte); }))
    report_write_after_free(function, written.start);
}

void Checker::before_fork() noexcept {
  if (!on_) return;
  registry_.lock_all();
  quarantine_.mutex().lock();
  pool_.mutex().lock();
}

void Checker::after_fork_in_parent() noexcept {
  if (!on_) return;
  pool_.mutex().unlock();
  quarantine_.mutex().unlock();
  registry_.unlock_all();
}

void Checker::after_fork_in_child() noexcept {
  if (!on_) return;
  pool_.mutex().reset_after_fork();
  quarantine_.mutex().reset_after_fork();
  registry_.reset_after_fork();
}

}  // namespace terrace::check
