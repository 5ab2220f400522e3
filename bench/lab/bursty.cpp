// SPDX-License-Identifier: MIT OR Apache-2.0
// Hundreds of threads that sleep most of the time, as those of a chat server: [MP-RCS] 6.3, where VolanoMark does. In each room
// of 20 threads a message goes round; who gets it allocates 10 to 50 objects of about 100 bytes, passes it on and sleeps.
//
// bench_lab_bursty KEY=VALUE...      see options.h; besides
//   messages=1500                    per room
// prints messages per second.
#include "options.h"

#include <cstring>
#include <thread>
#include <vector>

namespace {

using namespace lab_bench;
using Clock = std::chrono::steady_clock;

constexpr unsigned room_size = 20;
enum Mail : std::uint32_t { none = 0, message = 1, go_home = 2 };

struct alignas(128) Member {
  Word mail{none};
  void send(Mail what) {
    mail.store(what, std::memory_order_release);
    futex_wake(mail, 1);
  }
  Mail receive() {
    std::uint32_t got;
    while ((got = mail.exchange(none, std::memory_order_acquire)) == none) futex_wait(mail, none);
    return static_cast<Mail>(got);
  }
};

struct Room {
  Member members[room_size];
  std::uint64_t left = 0;  // messages; whoever has the message looks
};

struct Run {
  Young young;
  std::vector<Room> rooms;
  std::atomic<unsigned> ready{0};
  Word rooms_open{0};
};

class Chatter {
 public:
  Chatter(Run& run, std::size_t room, unsigned number)
      : run_(run), room_(run.rooms[room]), number_(number), state_(static_cast<std::uint32_t>(room * room_size + number)) {}

  void operator()() {
    Young::Mutator mutator(run_.young);
    bool first = true;
    for (;;) {
      Mail mail;
      {
        const Young::Blocked blocked(run_.young);
        if (first) run_.ready.fetch_add(1);
        first = false;
        mail = room_.members[number_].receive();
      }
      if (mail == go_home) return;
      if (room_.left == 0) {
        if (run_.rooms_open.fetch_sub(1) == 1) futex_wake(run_.rooms_open, 1);
        continue;
      }
      --room_.left;
      const std::uint32_t objects = 10 + below(41);
      for (std::uint32_t i = 0; i < objects; ++i) {
        const std::size_t bytes = 64 + 8 * below(10);
        std::memset(static_cast<char*>(mutator.allocate(bytes)) + sizeof(Header), 0, bytes - sizeof(Header));
      }
      room_.members[(number_ + 1) % room_size].send(message);
    }
  }

 private:
  std::uint32_t below(std::uint32_t n) { return (state_ = state_ * 1664525U + 1013904223U) / 65536U % n; }

  Run& run_;
  Room& room_;
  unsigned number_;
  std::uint32_t state_;
};

}  // namespace

int main(int argc, char** argv) {
  const Options options(argc, argv);
  const std::size_t rooms = options.number("threads", 1000) / room_size;
  const std::size_t per_room = options.number("messages", 1500);
  Run run{Young(options.young(std::size_t{4} << 20), options.config()), std::vector<Room>(rooms)};
  run.rooms_open.store(static_cast<std::uint32_t>(rooms));
  std::vector<std::thread> all;
  for (std::size_t room = 0; room < rooms; ++room) {
    for (unsigned i = 0; i < room_size; ++i) all.emplace_back(Chatter(run, room, i));
    run.rooms[room].left = per_room;
  }
  while (run.ready.load() != all.size()) std::this_thread::yield();

  const auto begin = Clock::now();
  for (Room& room : run.rooms) room.members[0].send(message);
  for (std::uint32_t open; (open = run.rooms_open.load()) != 0;) futex_wait(run.rooms_open, open);
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();

  const auto messages = static_cast<double>(rooms * per_room);
  Line line;
  line.add("messages", messages).add("messages_per_second", messages / seconds).add("seconds", seconds);
  line.add(run.young).end();  // before the threads leave: that gives up their buffers
  for (Room& room : run.rooms) {
    for (Member& member : room.members) member.send(go_home);
  }
  for (std::thread& t : all) t.join();
}
