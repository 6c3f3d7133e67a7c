// Orders of tasks: the specification's vectors V1 to V8, properties on random instances, and a second, naive
// implementation of the block evaluation and of the search.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "experts/registry.h"
#include "experts/schedule/block_eval.h"
#include "experts/schedule/makespan.h"

namespace sluice::experts {
namespace {

using testing::ElementsAre, testing::DoubleNear;

Task task(char state, std::uint16_t expert, double run, std::uint16_t tensor = 0) {
  return {.expert = {0, expert}, .tensor = tensor, .state = static_cast<State>(state), .run = run};
}

Schedule order(std::string_view scheduler, std::span<const Task> tasks, const ScheduleCosts& costs) {
  Schedule schedule{.order = {9}, .block_end = {9}};
  find_scheduler(scheduler).make()->order(tasks, costs, schedule);
  return schedule;
}

// The blocks as text, by expert: "1 2 | 0".
std::string text(std::span<const Task> tasks, const Schedule& schedule) {
  std::string all;
  std::size_t at = 0;
  for (std::uint32_t end : schedule.block_end) {
    if (at > 0) all += " | ";
    for (const std::size_t begin = at; at < end; ++at) {
      all += (at > begin ? " " : "") + std::to_string(tasks[schedule.order[at]].expert.index);
    }
  }
  return all;
}

struct Vector {
  const char* name;
  ScheduleCosts costs;
  std::vector<Task> tasks;
  std::string blocks, literal_blocks;
  double makespan, literal_makespan;
  LowerBounds bounds;
};

const Vector kVectors[] = {
    {"V1",
     {2, 2, 10, 2, 3},
     {task('M', 0, 5), task('C', 1, 4), task('S', 2, 3), task('E', 3, 2)},
     "1 2 0 3",
     "3 1 2 0",
     30,
     33,
     {28, 12, 14, 19}},
    {"V2",
     {2, 2, 10, 2, 3},
     {task('C', 0, 5), task('S', 1, 4), task('C', 2, 3)},
     "0 1 2",
     "2 0 1",
     16,
     15,
     {4, 9, 12, 11}},
    {"V3", {2, 2, 10, 2, 3}, {task('M', 0, 5)}, "0", "0", 19, 19, {14, 3, 5, 19}},
    {"V4",
     {2, 2, 10, 2, 12},
     {task('M', 0, 5), task('C', 1, 4), task('C', 2, 3), task('M', 3, 2)},
     "1 0 | 3 | 2",
     "1 0 | 3 | 2",
     51,
     51,
     {28, 48, 14, 21}},
    {"V5",
     {2, 1, 10, 2, 1},
     {task('M', 0, 4, 0), task('M', 0, 4, 1), task('M', 1, 6, 0), task('M', 1, 6, 1)},
     "1 1 0 0",
     "1 1 0 0",
     60,
     60,
     {56, 8, 10, 20}},
    {"V6", {2, 2, 10, 2, 3}, {task('E', 0, 1), task('E', 1, 2)}, "1 0", "0 1", 21, 22, {20, 6, 3, 12}},
    {"V7",
     {2, 2, 10, 2, 3},
     {task('M', 0, 1), task('C', 1, 20), task('C', 2, 10)},
     "1 2 0",
     "2 1 0",
     34,
     34,
     {14, 9, 31, 23}},
    {"V8",
     {4, 1, 1, .1, .3},
     {task('M', 0, 0), task('C', 1, 0), task('C', 2, 0), task('M', 3, 0)},
     "1 0 | 3 | 2",
     "1 0 | 3 | 2",
     4.8,
     4.8,
     {2.8, 4.8, 0, 1.4}},
};

TEST(ZipAffinity, VectorsOfTheSpecification) {
  for (const Vector& v : kVectors) {
    SCOPED_TRACE(v.name);
    const Schedule schedule = order("zip-affinity", v.tasks, v.costs);
    EXPECT_EQ(text(v.tasks, schedule), v.blocks);
    EXPECT_THAT(simulate(v.tasks, v.costs, schedule).makespan, DoubleNear(v.makespan, 1e-12));
    const Schedule literal = order("zip-affinity-literal", v.tasks, v.costs);
    EXPECT_EQ(text(v.tasks, literal), v.literal_blocks);
    EXPECT_THAT(simulate(v.tasks, v.costs, literal).makespan, DoubleNear(v.literal_makespan, 1e-12));
    const LowerBounds bounds = lower_bounds(v.tasks, v.costs);
    EXPECT_THAT(bounds.io, DoubleNear(v.bounds.io, 1e-12));
    EXPECT_THAT(bounds.decode, DoubleNear(v.bounds.decode, 1e-12));
    EXPECT_THAT(bounds.run, DoubleNear(v.bounds.run, 1e-12));
    EXPECT_THAT(bounds.path, DoubleNear(v.bounds.path, 1e-12));
  }
}

TEST(ZipAffinity, TimesOfTheVectors) {
  const auto timeline = [](const Vector& v) {
    return simulate(v.tasks, v.costs, order("zip-affinity", v.tasks, v.costs));
  };
  EXPECT_THAT(timeline(kVectors[0]).ready, ElementsAre(18, 3, 9, 28));
  EXPECT_THAT(timeline(kVectors[0]).workers, ElementsAre(12, 12));
  EXPECT_EQ(timeline(kVectors[0]).idle, 0);
  EXPECT_THAT(timeline(kVectors[2]).workers, ElementsAre(5, 7));
  EXPECT_EQ(timeline(kVectors[2]).io, 14);
  EXPECT_EQ(timeline(kVectors[2]).idle, 6);
  const Timeline v5 = timeline(kVectors[4]);
  ASSERT_EQ(v5.runs.size(), 2u);
  EXPECT_EQ(v5.runs[0].expert.index, 1);
  EXPECT_EQ(v5.runs[0].ready, 36);
  EXPECT_EQ(v5.runs[1].ready, 56);
  EXPECT_EQ(v5.idle, 9);
}

TEST(LowerBounds, DecodingOverlapsReading) {
  // The z_j as printed would be 1.6 here.
  EXPECT_THAT(lower_bounds(std::vector{task('M', 0, 0)}, {4, 1, 1, .1, .3}).path, DoubleNear(1.4, 1e-12));
}

// ---- A second implementation, as the specification states it

struct NaiveEval {
  double io = 0, idle = 0;
  std::vector<double> workers, ready;  // ready: by position in the block
};

NaiveEval naive_eval(std::span<const Task> tasks, const ScheduleCosts& costs,
                     const std::vector<std::uint32_t>& block, double io, const std::vector<double>& workers) {
  NaiveEval e{.io = io, .workers = workers, .ready = {}};
  struct Op {
    std::size_t position;
    double available;
  };
  std::vector<Op> pending;
  for (std::size_t j = 0; j < block.size(); ++j) {
    const State state = tasks[block[j]].state;
    for (unsigned x = 0; x < costs.chunks; ++x) {
      if (state == State::kM || state == State::kS) {
        e.io += costs.v;
        pending.push_back({j, e.io});
      } else {
        pending.push_back({j, 0});
      }
    }
  }
  std::vector<double> sm(block.size()), dec(block.size());
  for (std::size_t j = 0; j < block.size(); ++j) {
    const State state = tasks[block[j]].state;
    if (state == State::kM || state == State::kE) sm[j] = e.io += costs.u;
  }
  while (!pending.empty()) {
    double start = std::numeric_limits<double>::infinity();
    for (const Op& op : pending)
      start = std::min(start, std::max(op.available, *std::ranges::min_element(e.workers)));
    const auto op = std::ranges::find_if(pending, [&](const Op& o) { return o.available <= start; });
    std::size_t worker = e.workers.size();
    for (std::size_t i = 0; i < e.workers.size(); ++i) {
      if (e.workers[i] > start) continue;
      if (worker == e.workers.size() || e.workers[i] > e.workers[worker]) worker = i;
    }
    e.idle += start - e.workers[worker];
    e.workers[worker] = start + costs.c;
    dec[op->position] = std::max(dec[op->position], e.workers[worker]);
    pending.erase(op);
  }
  for (std::size_t j = 0; j < block.size(); ++j) e.ready.push_back(std::max(dec[j], sm[j]));
  return e;
}

bool naive_dominant(const NaiveEval& e, const ScheduleCosts& costs) {
  std::vector<double> a = e.workers;
  std::ranges::sort(a);
  for (unsigned l = 1; l <= std::min<std::size_t>(a.size(), costs.chunks); ++l) {
    if (!(a[l - 1] - e.io >= l * costs.v)) return false;
  }
  return true;
}

std::vector<std::vector<std::uint32_t>> naive_search(std::span<const Task> tasks, const ScheduleCosts& costs,
                                                     bool literal) {
  const auto two = [&](std::uint32_t i) {
    return tasks[i].state == State::kC || tasks[i].state == State::kS;
  };
  std::vector<std::uint32_t> sorted[2];
  for (std::uint32_t i = 0; i < tasks.size(); ++i) sorted[two(i)].push_back(i);
  for (auto& list : sorted) {
    std::ranges::sort(list, [&](std::uint32_t a, std::uint32_t b) {
      if (tasks[a].run != tasks[b].run) return tasks[a].run > tasks[b].run;
      if (tasks[a].expert != tasks[b].expert) return tasks[a].expert < tasks[b].expert;
      return tasks[a].tensor < tasks[b].tensor;
    });
  }
  auto& [one, twos] = sorted;
  std::vector<std::vector<std::uint32_t>> blocks;
  double io = 0;
  std::vector<double> workers(costs.workers);
  while (!one.empty() || !twos.empty()) {
    auto& base = one.empty() ? twos : one;
    std::vector<std::uint32_t> block = {base.front()};
    base.erase(base.begin());
    for (;;) {
      const NaiveEval e0 = naive_eval(tasks, costs, block, io, workers);
      if (naive_dominant(e0, costs)) break;
      if (one.empty() && twos.empty()) break;
      auto& source = twos.empty() ? one : twos;
      const std::uint32_t j = source.front();
      const auto last = [&](bool type_two) {
        std::size_t at = 0;
        for (std::size_t i = 0; i < block.size(); ++i) {
          if (two(block[i]) == type_two && tasks[block[i]].run >= tasks[j].run) at = i + 1;
        }
        return at;
      };
      std::size_t position = block.size() + 1;
      for (std::size_t at = literal ? 0 : last(two(j)); at <= block.size() && position > block.size(); ++at) {
        auto with = block;
        with.insert(with.begin() + static_cast<std::ptrdiff_t>(at), j);
        if (naive_eval(tasks, costs, with, io, workers).idle <= e0.idle) position = at;
      }
      if (position > block.size()) position = last(true) != 0 ? last(true) : last(false);
      block.insert(block.begin() + static_cast<std::ptrdiff_t>(position), j);
      source.erase(source.begin());
    }
    const NaiveEval e = naive_eval(tasks, costs, block, io, workers);
    io = e.io;
    workers = e.workers;
    blocks.push_back(block);
  }
  return blocks;
}

struct Instance {
  std::vector<Task> tasks;
  ScheduleCosts costs;
};

Instance random_instance(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto draw = [&](double most) { return static_cast<double>(random() % 1001) / 1000 * most; };
  Instance instance;
  const unsigned chunks[] = {1, 2, 4, 5}, workers[] = {1, 2, 3, 6};
  instance.costs = {.chunks = chunks[random() % 4], .workers = workers[random() % 4], .u = draw(10)};
  // Every other instance has small integers, where ties are frequent.
  const bool ties = seed % 2 == 0;
  instance.costs.v = draw(1) * instance.costs.u / instance.costs.chunks;
  instance.costs.c = draw(2) * instance.costs.u / instance.costs.chunks;
  if (ties) {
    instance.costs.u = static_cast<double>(random() % 6);
    instance.costs.v = static_cast<double>(random() % 3);
    instance.costs.c = static_cast<double>(random() % 4);
  }
  const std::uint64_t experts = random() % 9, tensors = 1 + 2 * (random() % 2);
  for (std::uint16_t e = 0; e < experts; ++e) {
    const char state = "MESC"[random() % 4];
    const double run = ties ? static_cast<double>(random() % 5) : draw(10);
    for (std::uint16_t t = 0; t < tensors; ++t) {
      instance.tasks.push_back(task(state, static_cast<std::uint16_t>(e * 3), run, t));
    }
  }
  std::ranges::shuffle(instance.tasks, random);
  return instance;
}

TEST(BlockEval, EqualsTheNaiveOneToTheLastBit) {
  for (std::uint64_t seed = 1; seed <= 4000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto [tasks, costs] = random_instance(seed);
    std::mt19937_64 random(seed + 77);
    std::vector<std::uint32_t> block;
    for (std::uint32_t i = 0; i < tasks.size(); ++i) block.push_back(i);
    std::ranges::shuffle(block, random);
    BlockClock clock{.io = static_cast<double>(random() % 10), .workers = {}};
    for (unsigned i = 0; i < costs.workers; ++i) clock.workers.push_back(static_cast<double>(random() % 20));
    const NaiveEval expected = naive_eval(tasks, costs, block, clock.io, clock.workers);
    BlockEval eval(tasks, costs);
    std::vector<double> ready(tasks.size());
    const BlockClock start = clock;
    EXPECT_EQ(eval.run(block, clock, &ready), expected.idle);
    EXPECT_EQ(clock.io, expected.io);
    EXPECT_EQ(clock.workers, expected.workers);
    for (std::size_t i = 0; i < block.size(); ++i) EXPECT_EQ(ready[block[i]], expected.ready[i]);
    EXPECT_EQ(eval.dominant(clock), naive_dominant(expected, costs));
    EXPECT_EQ(eval.decodes(), tasks.size() * costs.chunks);
    // An evaluation that gives up early says so.
    if (expected.idle > 0) {
      clock = start;
      EXPECT_GT(eval.run(block, clock, nullptr, expected.idle / 2), expected.idle / 2);
    }
    if (testing::Test::HasFailure()) return;
  }
}

TEST(ZipAffinity, EqualsTheNaiveSearch) {
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto [tasks, costs] = random_instance(seed);
    for (const bool literal : {false, true}) {
      const Schedule schedule = order(literal ? "zip-affinity-literal" : "zip-affinity", tasks, costs);
      std::vector<std::uint32_t> flat, ends;
      for (const auto& block : naive_search(tasks, costs, literal)) {
        flat.insert(flat.end(), block.begin(), block.end());
        ends.push_back(static_cast<std::uint32_t>(flat.size()));
      }
      EXPECT_EQ(schedule.order, flat);
      EXPECT_EQ(schedule.block_end, ends);
    }
    if (testing::Test::HasFailure()) return;
  }
}

// The makespan computed in a second way: event by event, as the compute unit sees the experts.
double naive_makespan(std::span<const Task> tasks, const ScheduleCosts& costs, const Schedule& schedule) {
  double io = 0;
  std::vector<double> workers(costs.workers);
  std::vector<ExpertId> appear;
  std::map<ExpertId, double> ready, run;
  std::size_t begin = 0;
  for (std::uint32_t end : schedule.block_end) {
    const std::vector<std::uint32_t> block(schedule.order.begin() + static_cast<std::ptrdiff_t>(begin),
                                           schedule.order.begin() + end);
    const NaiveEval e = naive_eval(tasks, costs, block, io, workers);
    for (std::size_t i = 0; i < block.size(); ++i) {
      const Task& t = tasks[block[i]];
      if (!ready.contains(t.expert)) appear.push_back(t.expert);
      ready[t.expert] = std::max(ready[t.expert], e.ready[i]);
      run[t.expert] = t.run;
    }
    io = e.io;
    workers = e.workers;
    begin = end;
  }
  double now = 0;
  while (!appear.empty()) {
    auto next = std::ranges::find_if(appear, [&](ExpertId id) { return ready[id] <= now; });
    if (next == appear.end()) {
      now = std::numeric_limits<double>::infinity();
      for (ExpertId id : appear) now = std::min(now, ready[id]);
      continue;
    }
    now += run[*next];
    appear.erase(next);
  }
  return std::max({now, io, *std::ranges::max_element(workers)});
}

class EveryScheduler : public testing::TestWithParam<SchedulerPolicy> {};
INSTANTIATE_TEST_SUITE_P(Registry, EveryScheduler,
                         testing::ValuesIn(scheduler_policies().begin(), scheduler_policies().end()),
                         [](const auto& info) {
                           std::string name(info.param.name);
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

TEST_P(EveryScheduler, EachTaskOnceInBlocksThatAreNotEmpty) {
  const auto scheduler = GetParam().make();
  EXPECT_EQ(scheduler->name(), GetParam().name);
  Schedule schedule, again;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    auto [tasks, costs] = random_instance(seed);
    if (seed % 5 == 0) costs.chunks = 0;  // stored whole
    if (seed % 7 == 0) costs.step = 1e-3;
    scheduler->order(tasks, costs, schedule);
    EXPECT_EQ(std::set(schedule.order.begin(), schedule.order.end()).size(), tasks.size());
    EXPECT_EQ(schedule.order.size(), tasks.size());
    EXPECT_EQ(schedule.block_end.empty() ? 0 : schedule.block_end.back(), tasks.size());
    EXPECT_EQ(std::ranges::adjacent_find(schedule.block_end, std::ranges::greater_equal()),
              schedule.block_end.end());
    GetParam().make()->order(tasks, costs, again);
    EXPECT_EQ(again.order, schedule.order);
    EXPECT_EQ(again.block_end, schedule.block_end);
    if (testing::Test::HasFailure()) return;
  }
}

TEST_P(EveryScheduler, NoTasksTakeNoTime) {
  const Schedule schedule = order(GetParam().name, {}, {});
  EXPECT_TRUE(schedule.order.empty() && schedule.block_end.empty());
  const Timeline nothing = simulate({}, {.workers = 3}, schedule);
  EXPECT_EQ(nothing.makespan, 0);
  EXPECT_THAT(nothing.workers, ElementsAre(0, 0, 0));
  EXPECT_EQ(lower_bounds({}, {}).most(), 0);
}

TEST_P(EveryScheduler, MakespanIsWithinItsBounds) {
  const bool zip = GetParam().name.starts_with("zip-affinity");
  for (std::uint64_t seed = 1; seed <= 6000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto [tasks, costs] = random_instance(seed);
    const Schedule schedule = order(GetParam().name, tasks, costs);
    const double makespan = simulate(tasks, costs, schedule).makespan,
                 least = lower_bounds(tasks, costs).most();
    EXPECT_EQ(makespan, naive_makespan(tasks, costs, schedule));
    EXPECT_GE(makespan, least * (1 - 1e-12));
    if (zip) {
      EXPECT_LE(makespan, (3 - 1.0 / costs.workers) * least * (1 + 1e-12));
    }
    if (testing::Test::HasFailure()) return;
  }
}

TEST(ZipAffinity, BestOfIsTheBestOfFour) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto [tasks, costs] = random_instance(seed);
    Schedule two_first = order("p_sorted", tasks, costs);
    std::ranges::stable_partition(two_first.order,
                                  [&](std::uint32_t i) { return !is_type_one(tasks[i].state); });
    const Schedule candidates[] = {order("zip-affinity", tasks, costs),
                                   order("zip-affinity-literal", tasks, costs),
                                   order("p_sorted", tasks, costs), two_first};
    const Schedule* best = nullptr;
    double least = std::numeric_limits<double>::infinity();
    for (const Schedule& candidate : candidates) {
      const double makespan = simulate(tasks, costs, candidate).makespan;
      if (makespan >= least) continue;
      least = makespan;
      best = &candidate;
    }
    const Schedule schedule = order("zip-affinity-best-of", tasks, costs);
    EXPECT_EQ(schedule.order, best->order);
    EXPECT_EQ(schedule.block_end, best->block_end);
    if (testing::Test::HasFailure()) return;
  }
}

// A search that would cost 5 % of the layer's time is replaced by the p-sorted block, and counted.
TEST(ZipAffinity, CostGuard) {
  for (const char* name : {"zip-affinity", "zip-affinity-literal", "zip-affinity-best-of"}) {
    std::uint64_t fell = 0, kept = 0;
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
      SCOPED_TRACE(std::string(name) + ", seed " + std::to_string(seed));
      auto [tasks, costs] = random_instance(seed);
      const Schedule free = order(name, tasks, costs);
      const double layer = lower_bounds(tasks, costs).most();
      if (layer == 0) continue;
      for (const double most_decodes : {0.5, 50.0, 1e9}) {
        costs.step = 0.05 * layer / most_decodes;
        const auto scheduler = find_scheduler(name).make();
        Schedule schedule;
        scheduler->order(tasks, costs, schedule);
        const Schedule& expected = scheduler->fallbacks() == 0 ? free : order("p_sorted", tasks, costs);
        EXPECT_EQ(schedule.order, expected.order);
        EXPECT_EQ(schedule.block_end, expected.block_end);
        if (most_decodes != 50) {
          EXPECT_EQ(scheduler->fallbacks(), most_decodes < 1 ? 1u : 0u);
        }
        ++(scheduler->fallbacks() == 0 ? kept : fell);
      }
    }
    EXPECT_GT(fell, 100u);
    EXPECT_GT(kept, 100u);
  }
}

TEST(FifoScheduler, EveryTaskABlockInTheOrderGiven) {
  const std::vector<Task> tasks = {task('M', 3, 1), task('C', 1, 9), task('S', 2, 5)};
  EXPECT_EQ(text(tasks, order("fifo", tasks, {})), "3 | 1 | 2");
  EXPECT_EQ(text(tasks, order("p_sorted", tasks, {})), "1 2 3");
}

}  // namespace
}  // namespace sluice::experts
