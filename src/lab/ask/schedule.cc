// `schedule`: the blocks in which the tasks of one layer are processed, and how long that takes. SPEC
// §1.4-1.6.
#include <cmath>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "experts/registry.h"
#include "experts/schedule/makespan.h"
#include "lab/ask/fields.h"
#include "lab/ask/functions.h"

namespace sluice::lab {
namespace {
namespace schedule_function {

using experts::State, experts::Task;

constexpr struct {
  std::string_view mode, scheduler;
} kModes[] = {{"default", "zip-affinity"},
              {"literal", "zip-affinity-literal"},
              {"best_of", "zip-affinity-best-of"},
              {"p_sorted", "p_sorted"},
              {"fifo", "fifo"}};
constexpr std::int64_t kMostWorkers = 1024, kMostChunks = 1 << 16;

constexpr Field kIn[] = {
    {"mode", "default, literal, best_of, p_sorted or fifo"},
    {"K", "exponent chunks of a tensor, an integer >= 1"},
    {"L", "decode workers, an integer >= 1"},
    {"u", "time to read one tensor's sm, >= 0"},
    {"v", "time to read one exponent chunk, >= 0"},
    {"c", "time to decode one exponent chunk, >= 0"},
    {"tasks", "an array of {id, expert, tensor: integers, state: M, E, S or C}; (expert, tensor) is unique"},
    {"p", "an array, by expert id: time to compute the expert, >= 0"},
};
constexpr Field kOut[] = {
    {"blocks", "task ids, an array per block"},
    {"ready", "{expert: when all its tensors are}"},
    {"makespan", "when the last expert, read and decode are over"},
    {"io", "when the last read is over"},
    {"threads", "when each decode worker is free, ascending"},
    {"idle", "time that workers waited before a decode, over all blocks"},
    {"lower_bounds", "{I: all reads, C: all decodes / L, P: all experts, Z: the longest task alone}"},
};

std::string_view scheduler_of(const JsonObject& line) {
  const std::string mode = line.string("mode");
  for (const auto& known : kModes) {
    if (known.mode == mode) return known.scheduler;
  }
  line.fail("mode", kIn[0].text);
}

struct Tasks {
  std::vector<std::int64_t> ids;
  std::vector<Task> tasks;
};

Tasks parse_tasks(const JsonObject& line, std::span<const double> p) {
  constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min(),
                         kMax = std::numeric_limits<std::int64_t>::max();
  Tasks parsed;
  std::set<std::pair<std::int64_t, std::int64_t>> seen;
  for (const Json& value : array_of(line, "tasks", kIn[6].text)) {
    const std::string place = "tasks[" + std::to_string(parsed.tasks.size()) + "]";
    if (!value.is_object()) fail_at(line, place, "an object", value);
    const JsonObject object(value, line.name() + ": " + place);
    parsed.ids.push_back(object.integer("id", kMin, kMax));
    const std::int64_t expert = object.integer("expert", 0, static_cast<std::int64_t>(p.size()) - 1);
    const std::int64_t tensor = object.integer("tensor", 0, std::numeric_limits<std::uint16_t>::max());
    if (!seen.emplace(expert, tensor).second) {
      fail_at(line, place, "each (expert, tensor) once", Json::array({expert, tensor}));
    }
    const std::string state = object.string("state");
    if (state.size() != 1 || std::string_view("MESC").find(state[0]) == std::string_view::npos)
      object.fail("state", "M, E, S or C");
    parsed.tasks.push_back({.expert = {0, static_cast<std::uint16_t>(expert)},
                            .tensor = static_cast<std::uint16_t>(tensor),
                            .state = static_cast<State>(state[0]),
                            .run = p[static_cast<std::size_t>(expert)]});
  }
  return parsed;
}

Json answer(const JsonObject& line) {
  const std::string_view scheduler = scheduler_of(line);
  const experts::ScheduleCosts costs{.chunks = static_cast<unsigned>(line.integer("K", 1, kMostChunks)),
                                     .workers = static_cast<unsigned>(line.integer("L", 1, kMostWorkers)),
                                     .u = line.real("u", 0, kMostNumber),
                                     .v = line.real("v", 0, kMostNumber),
                                     .c = line.real("c", 0, kMostNumber)};
  const std::vector<double> p = numbers(line, "p", 0, kMostNumber);
  if (p.size() > kMostExperts) line.fail("p", "at most 65536 experts");
  const Tasks parsed = parse_tasks(line, p);
  const std::span<const Task> tasks = parsed.tasks;
  if (tasks.size() * costs.chunks > kMostChunks) line.fail("tasks", "at most 65536 chunks in all");

  experts::Schedule schedule;
  experts::find_scheduler(scheduler).make()->order(tasks, costs, schedule);
  const experts::Timeline timeline = simulate(tasks, costs, schedule);
  const experts::LowerBounds bounds = lower_bounds(tasks, costs);

  Json blocks = Json::array(), ready = Json::object();
  std::size_t at = 0;
  for (std::uint32_t end : schedule.block_end) {
    Json block = Json::array();
    for (; at < end; ++at) block.push_back(parsed.ids[schedule.order[at]]);
    blocks.push_back(std::move(block));
  }
  for (const experts::ExpertRun& run : timeline.runs) ready[std::to_string(run.expert.index)] = run.ready;
  return {{"blocks", std::move(blocks)},
          {"ready", std::move(ready)},
          {"makespan", timeline.makespan},
          {"io", timeline.io},
          {"threads", timeline.workers},
          {"idle", timeline.idle},
          {"lower_bounds", {{"I", bounds.io}, {"C", bounds.decode}, {"P", bounds.run}, {"Z", bounds.path}}}};
}

}  // namespace schedule_function
}  // namespace

const Function kSchedule = {.name = "schedule",
                            .section = "1.4-1.6",
                            .in = schedule_function::kIn,
                            .out = schedule_function::kOut,
                            .answer = schedule_function::answer};

}  // namespace sluice::lab
