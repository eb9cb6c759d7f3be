// Stacks that are switched by Boost.Context: left in the middle of calls and gone on with in any
// order and in other threads, unwound by exceptions, and given up while they wait. fibers
#include <boost/context/fiber.hpp>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

namespace {

namespace ctx = boost::context;

#define NOINLINE __attribute__((noinline))

int left;

struct Scope {
  ~Scope() { ++left; }
};

// So many calls below, leaves the stack; its value is what the frames make of `value`.
NOINLINE long Descend(ctx::fiber& back, int depth, long value, bool throws) {
  Scope scope;
  if (depth == 0) {
    back = std::move(back).resume();
    if (throws) throw std::runtime_error("below");
    return value;
  }
  long below = Descend(back, depth - 1, value, throws);
  asm volatile("" ::: "memory");
  return below + 1;
}

struct Job {
  int depth;
  bool throws;
  long result;
  ctx::fiber fiber;
};

NOINLINE ctx::fiber Run(Job& job, ctx::fiber&& back) {
  for (int round = 0; round < 3; ++round) {
    try {
      job.result += Descend(back, job.depth + round, 100, job.throws && round == 1);
    } catch (const std::runtime_error&) {
      job.result += 10000;
    }
  }
  return std::move(back);
}

std::vector<Job> MakeJobs() {
  std::vector<Job> jobs;
  for (int i = 0; i < 12; ++i)
    jobs.push_back({i, i % 3 == 0, 0, {}});
  for (Job& job : jobs)
    job.fiber = ctx::fiber([&job](ctx::fiber&& back) { return Run(job, std::move(back)); });
  return jobs;
}

void Resume(Job& job) {
  if (job.fiber) job.fiber = std::move(job.fiber).resume();
}

void Print(const char* name, const std::vector<Job>& jobs) {
  long sum = 0;
  for (const Job& job : jobs)
    sum += job.result;
  printf("%s sum %ld left %d\n", name, sum, left);
}

void InTurn() {
  left = 0;
  auto jobs = MakeJobs();
  for (int round = 0; round < 4; ++round)
    for (size_t i = 0; i < jobs.size(); ++i)
      Resume(jobs[round % 2 == 0 ? i : jobs.size() - 1 - i]);
  Print("in turn", jobs);
}

void InOtherThreads() {
  left = 0;
  auto jobs = MakeJobs();
  for (int round = 0; round < 4; ++round) {
    std::thread([&jobs] {
      for (Job& job : jobs)
        Resume(job);
    }).join();
  }
  Print("in other threads", jobs);
}

// What waits is unwound by an exception of the library's.
void GivenUp() {
  left = 0;
  {
    auto jobs = MakeJobs();
    for (int round = 0; round < 2; ++round)
      for (Job& job : jobs)
        Resume(job);
    Print("before", jobs);
  }
  printf("given up left %d\n", left);
}

// A function that is to run on top of what waits.
void OnTop() {
  left = 0;
  auto jobs = MakeJobs();
  for (Job& job : jobs)
    Resume(job);
  for (Job& job : jobs) {
    job.fiber = std::move(job.fiber).resume_with([&job](ctx::fiber&& back) {
      job.result += 7;
      return std::move(back);
    });
  }
  for (int round = 0; round < 2; ++round)
    for (Job& job : jobs)
      Resume(job);
  Print("on top", jobs);
}

}  // namespace

int main() {
  for (int i = 0; i < 6; ++i) {
    InTurn();
    InOtherThreads();
    GivenUp();
    OnTop();
  }
  return 0;
}
