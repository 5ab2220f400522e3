// SPDX-License-Identifier: MIT OR Apache-2.0
#include "plan.h"
#include "reader.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <unistd.h>
#include <vector>

namespace bench::replay {

namespace {

using terrace::trace::Call;
using terrace::trace::Calls;
using terrace::trace::Damaged;
using terrace::trace::Kind;
using terrace::trace::Object;
using terrace::trace::Trace;

/// Which objects are released by another thread than the one that allocated them.
std::vector<bool> find_shared(const Trace& trace) {
  std::vector<bool> shared;
  Calls calls(trace);
  while (const std::optional<Call> call = calls.next()) {
    if (call->object) shared.push_back(false);
    if (call->old && call->old->thread != call->thread) shared[call->old->id] = true;
  }
  return shared;
}

struct Place {
  std::uint32_t index = 0;
  std::uint32_t turn = 0;
};

/// Places of one thread: the one freed last is the next.
class OwnPlaces {
 public:
  Place take() {
    if (free_.empty()) return {count_++, 0};
    const std::uint32_t index = free_.back();
    free_.pop_back();
    return {index, 0};
  }
  void give(Place place) { free_.push_back(place.index); }
  std::uint32_t count() const { return count_; }

 private:
  std::uint32_t count_ = 0;
  std::vector<std::uint32_t> free_;
};

/// Used again only so much later that nobody has to wait for the release, as far apart as the threads may be.
class SharedPlaces {
 public:
  Place take(std::uint64_t sequence) {
    if (free_.empty() || free_.front().sequence + 2 * window > sequence) return {count_++, 0};
    const Place place = free_.front().place;
    free_.pop_front();
    return place;
  }
  void give(Place place, std::uint64_t sequence) { free_.push_back({place, sequence}); }
  std::uint32_t count() const { return count_; }

 private:
  struct Free {
    Place place;
    std::uint64_t sequence;
  };
  std::uint32_t count_ = 0;
  std::deque<Free> free_;
};

class Compiler {
 public:
  explicit Compiler(const Trace& trace) : trace_(trace), shared_(find_shared(trace)), lanes_(trace.threads()) {}

  void compile();
  void write(int file);

 private:
  struct Lane {
    std::vector<Step> steps;
    OwnPlaces places;
    std::uint64_t last_pace = 0;
    std::uint64_t first_sequence = 0;
  };
  struct Held {
    Place place;
    bool shared = false;
  };

  void add(const Call& call);
  void release(const Call& call);
  void allocate(const Call& call);
  void pace(Lane& lane, std::uint64_t sequence);
  static Step make_step(Do what, std::uint64_t amount, const Held& held);
  void collect_leftovers(const Calls& calls);
  std::vector<std::uint64_t> first_places() const;

  const Trace& trace_;
  std::vector<bool> shared_;
  std::vector<Lane> lanes_;
  SharedPlaces shared_places_;
  std::unordered_map<std::uint64_t, Held> held_;  // by object
  struct Left {
    Held held;
    std::uint64_t size;
    std::uint32_t thread;
  };
  std::vector<Left> leftovers_;
  std::uint64_t operations_ = 0;
  std::uint32_t started_ = 0;
  std::uint32_t previous_ = 0;         // thread of the call before
  std::vector<std::uint32_t> number_;  // of the trace's threads in the plan; those without a call have none
  std::vector<std::uint32_t> order_;
};

Step Compiler::make_step(Do what, std::uint64_t amount, const Held& held) {
  Step step;
  step.place = held.place.index;
  step.turn = held.place.turn;
  step.amount = amount;
  step.what = static_cast<std::uint8_t>(what);
  step.shared = held.shared ? 1 : 0;
  return step;
}

void Compiler::pace(Lane& lane, std::uint64_t sequence) {
  if (sequence - lane.last_pace <= window / 8) return;
  lane.last_pace = sequence;
  lane.steps.push_back(make_step(Do::pace, sequence, {}));
}

void Compiler::release(const Call& call) {
  Lane& lane = lanes_[call.thread];
  const auto found = held_.find(call.old->id);
  Held held = found->second;
  held_.erase(found);
  lane.steps.push_back(make_step(call.kind == Kind::free ? Do::release : Do::resize_from, call.old->size, held));
  ++held.place.turn;
  if (held.shared) {
    shared_places_.give(held.place, call.sequence);
  } else {
    lane.places.give(held.place);
  }
}

void Compiler::allocate(const Call& call) {
  Lane& lane = lanes_[call.thread];
  Held held;
  held.shared = shared_[call.object->id];
  held.place = held.shared ? shared_places_.take(call.sequence) : lane.places.take();
  static constexpr Do by_kind[] = {Do::malloc, Do::malloc, Do::calloc, Do::aligned, Do::resize_to};
  Step step = make_step(by_kind[static_cast<std::size_t>(call.kind)], call.object->size, held);
  step.alignment_log2 = call.alignment_log2;
  lane.steps.push_back(step);
  ++held.place.turn;
  held_.emplace(call.object->id, held);
}

void Compiler::add(const Call& call) {
  Lane& lane = lanes_[call.thread];
  if (number_[call.thread] == UINT32_MAX) {
    // Started by whoever made the call before: that is the thread that called pthread_create, or one that ran beside it.
    number_[call.thread] = static_cast<std::uint32_t>(order_.size());
    order_.push_back(call.thread);
    lane.first_sequence = lane.last_pace = call.sequence;
    Held thread;
    thread.place.index = number_[call.thread];
    if (thread.place.index > 0) lanes_[previous_].steps.push_back(make_step(Do::spawn, 0, thread));
  }
  previous_ = call.thread;
  pace(lane, call.sequence);
  if (call.old) release(call);
  if (call.object) allocate(call);
  ++operations_;
}

void Compiler::collect_leftovers(const Calls& calls) {
  for (const auto& [address, object] : calls.live()) leftovers_.push_back({held_.at(object.id), object.size, object.thread});
}

void Compiler::compile() {
  number_.assign(trace_.threads(), UINT32_MAX);
  Calls calls(trace_);
  while (const std::optional<Call> call = calls.next()) add(*call);
  collect_leftovers(calls);
}

/// Of each thread of the trace, in the table of all.
std::vector<std::uint64_t> Compiler::first_places() const {
  std::vector<std::uint64_t> first(lanes_.size() + 1, 0);
  for (std::size_t i = 0; i < lanes_.size(); ++i) {
    const std::uint64_t lines = (lanes_[i].places.count() + places_per_line - 1) / places_per_line + 1;
    first[i + 1] = first[i] + lines * places_per_line;
  }
  return first;
}

class Output {
 public:
  explicit Output(int file) : file_(file) {}

  template <typename T>
  void put(const T* items, std::size_t count) {
    const char* from = reinterpret_cast<const char*>(items);
    for (std::size_t rest = count * sizeof(T); rest > 0;) {
      const ssize_t n = ::write(file_, from, rest);
      if (n <= 0) throw Damaged(std::string("the plan can not be written: ") + std::strerror(errno));
      from += n;
      rest -= static_cast<std::size_t>(n);
      offset_ += static_cast<std::uint64_t>(n);
    }
  }
  void align() {
    static constexpr char zero[page_bytes] = {};
    put(zero, static_cast<std::size_t>(-offset_ % page_bytes));
  }

 private:
  int file_;
  std::uint64_t offset_ = 0;
};

std::uint64_t aligned(std::uint64_t offset) { return (offset + page_bytes - 1) / page_bytes * page_bytes; }

void Compiler::write(int file) {
  const std::vector<std::uint64_t> first = first_places();
  if (first.back() > UINT32_MAX) throw Damaged("too many blocks at one time");
  PlanHeader header;
  std::memcpy(header.magic, plan_magic, sizeof header.magic);
  header.operations = operations_;
  header.threads = order_.size();
  header.own_places = first.back();
  header.shared_places = shared_places_.count();
  header.leftovers = leftovers_.size();
  std::uint64_t offset = aligned(sizeof header + order_.size() * sizeof(PlanThread));
  std::vector<PlanThread> threads;
  for (const std::uint32_t lane : order_) {
    threads.push_back({offset, lanes_[lane].steps.size(), lanes_[lane].first_sequence});
    offset = aligned(offset + lanes_[lane].steps.size() * sizeof(Step));
  }
  header.leftovers_offset = offset;

  Output output(file);
  output.put(&header, 1);
  output.put(threads.data(), threads.size());
  for (const std::uint32_t lane : order_) {
    for (Step& step : lanes_[lane].steps) {
      const auto what = static_cast<Do>(step.what);
      const bool own = step.shared == 0 && what != Do::pace && what != Do::spawn;
      if (own) step.place += static_cast<std::uint32_t>(first[lane]);
    }
    output.align();
    output.put(lanes_[lane].steps.data(), lanes_[lane].steps.size());
  }
  output.align();
  std::vector<Leftover> leftovers;
  for (const Left& left : leftovers_) {
    const std::uint64_t base = left.held.shared ? 0 : first[left.thread];
    leftovers.push_back({left.size, static_cast<std::uint32_t>(base + left.held.place.index), left.held.shared ? 1U : 0U});
  }
  output.put(leftovers.data(), leftovers.size());
}

}  // namespace

void compile(const std::string& trace, int file) {
  const Trace opened(trace);
  Compiler compiler(opened);
  compiler.compile();
  compiler.write(file);
}

}  // namespace bench::replay
