// SPDX-License-Identifier: MIT OR Apache-2.0
// A pool of 1,000 threads that all work, as servers have that give each request a thread: a task is taken, makes strings and a
// map of them, and leaves a result that another thread frees.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

struct Pool {
  std::mutex mutex;
  std::condition_variable wanted, finished;
  std::deque<unsigned> tasks;
  std::deque<std::vector<std::string>> results;
  std::vector<float> milliseconds;  // of each task that is done
};

std::vector<std::string> work(unsigned number) {
  std::map<std::string, std::vector<char>> fields;
  for (unsigned i = 0; i < 20 + number % 60; ++i) {
    fields["field " + std::to_string(i * 7919 % 1000) + " of a request"].assign(16 + (number * 13 + i * 31) % 900, 'x');
  }
  std::vector<char> body(1000 + number * 37 % 60000, 'b');
  std::vector<std::string> result;
  for (const auto& [name, value] : fields) result.push_back(name + std::to_string(value.size() + body.size()));
  return result;
}

void serve(Pool& pool) {
  std::unique_lock lock(pool.mutex);
  for (;;) {
    pool.wanted.wait(lock, [&] { return !pool.tasks.empty(); });
    const unsigned number = pool.tasks.front();
    pool.tasks.pop_front();
    lock.unlock();
    const auto began = std::chrono::steady_clock::now();
    std::vector<std::string> result = work(number), old;
    lock.lock();
    pool.results.push_back(std::move(result));
    if (pool.results.size() > 2000) {
      old = std::move(pool.results.front());
      pool.results.pop_front();
    }
    lock.unlock();
    old.clear();
    const std::chrono::duration<float, std::milli> took = std::chrono::steady_clock::now() - began;
    lock.lock();
    pool.milliseconds.push_back(took.count());
    pool.finished.notify_one();
  }
}

unsigned wanted_tasks() {
  for (;; usleep(20'000)) {
    unsigned count = 0;
    if (std::ifstream file("tasks"); file >> count) return count;
  }
}

}  // namespace

int main() {
  std::signal(SIGTERM, [](int) { std::_Exit(0); });
  static Pool pool;
  for (int i = 0; i < 1000; ++i) std::thread(serve, std::ref(pool)).detach();
  std::ofstream("ready").flush();
  const unsigned count = wanted_tasks();
  std::unique_lock lock(pool.mutex);
  pool.milliseconds.reserve(count);
  for (unsigned i = 0; i < count; ++i) {
    pool.tasks.push_back(i);
    pool.wanted.notify_one();
    pool.finished.wait(lock, [&] { return i < pool.milliseconds.size() + 3000; });
  }
  pool.finished.wait(lock, [&] { return pool.milliseconds.size() == count; });
  pool.results.clear();
  std::sort(pool.milliseconds.begin(), pool.milliseconds.end());
  std::ofstream("loaded.new") << count << ' ' << pool.milliseconds[count * 99ULL / 100];
  std::vector<float>().swap(pool.milliseconds);
  lock.unlock();
  std::rename("loaded.new", "loaded");
  for (;;) pause();
}
