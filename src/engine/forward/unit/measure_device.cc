#include "engine/forward/unit/measure_device.h"

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <future>
#include <memory>
#include <random>

#include "base/error.h"
#include "engine/forward/common/expert_samples.h"
#include "engine/forward/common/workspace.h"
#include "engine/forward/unit/device_unit.h"
#include "engine/session/step.h"
#include "fetch/memory/expert_store.h"
#include "model/architecture.h"

namespace sluice::engine {
namespace {

using Clock = std::chrono::steady_clock;
using device::Event;

// Seconds until the last of `count` events that `start` gives one after the other is done. Meanwhile `beside`
// is called again and again.
double seconds_until(const std::function<Event()>& start, const std::function<void()>& beside = {},
                     std::size_t count = 1) {
  const auto ended = std::make_shared<std::promise<Clock::time_point>>();
  const Clock::time_point begin = Clock::now();
  for (std::size_t i = 1; i < count; ++i) start();
  const Event event = start();
  event.on_done([ended](const std::optional<Error>&) { ended->set_value(Clock::now()); });
  while (beside && !event.done()) beside();
  event.wait();
  return std::chrono::duration<double>(ended->get_future().get() - begin).count();
}

// Who is paced keeps his rate over some operations in a row, since no thread can sleep for microseconds: so
// many are measured, or for so long.
constexpr double kLongEnough = 5e-3;
constexpr std::size_t kMost = 64;

// Seconds of one of many such operations in a row.
double seconds_each(const std::function<Event()>& start, const std::function<void()>& beside = {}) {
  std::size_t count = 1;
  for (;;) {
    const double seconds = seconds_until(start, beside, count);
    if (seconds >= kLongEnough || count == kMost) return seconds / static_cast<double>(count);
    count = std::min(kMost, 4 * count);
  }
}

// Keeps a device computing and copying while the host is measured.
class Load {
 public:
  Load(DeviceUnit& unit, const fetch::PlacedExpert& place, bool computes)
      : unit_(unit), place_(place), computes_(computes) {}
  ~Load() {
    for (const Event& event : events_) event.settled().wait();
  }
  void refill() {
    while (!events_.empty() && events_.front().done()) events_.pop_front();
    while (events_.size() < kDepth) {
      events_.push_back(unit_.copy_sample(place_));
      if (computes_) events_.push_back(unit_.compute_sample(1));
    }
  }

 private:
  static constexpr std::size_t kDepth = 6;
  DeviceUnit& unit_;
  const fetch::PlacedExpert& place_;
  const bool computes_;
  std::deque<Event> events_;
};

class Measurement {
 public:
  Measurement(const MeasureTools& tools, DeviceUnit& unit, const DeviceMeasures& what,
              const MeasureOptions& options)
      : tools_(tools), unit_(unit), options_(options), samples_(tools, 0), what_(what) {
    std::mt19937_64 random(options.seed);
    samples_.choose(random,
                    [&](std::uint32_t layer) { return !what.experts || !what.lacking.leaves_out(layer); });
    samples_.read(SampleRead::kBoth);
    const bool words = what.view == kWordsView;
    if (words) samples_.decode();
    place_ = samples_.place(samples_.all()[0], !words);
    if (what.view == kMsbView) place_.memory.rest = nullptr;
    unit_.put_sample(place_);
  }

  DeviceProfile run(const std::string& name) {
    DeviceProfile profile;
    profile.device = name;
    profile.view = std::string(what_.view);
    profile.expert = place_.bytes();
    if (profile.in_slices()) profile.lsb = place_.layout->rest.bytes;
    profile.row = tools_.model.config.hidden * sizeof(float);
    profile.in_place = unit_.reads_in_place(place_);
    profile.idle = link({});
    profile.busy = link(on_host_);
    profile.sync = median([&] { return seconds_until([&] { return unit_.copy_little_back(); }); });
    if (what_.experts)
      seconds_until([&] { return unit_.compute_sample(1); }, on_host_);  // the first takes longer
    for (const std::uint32_t tokens : measured_token_counts(tools_)) {
      if (what_.experts)
        profile.run.emplace_back(
            tokens,
            median([&] { return seconds_each([&] { return unit_.compute_sample(tokens); }, on_host_); }));
      profile.host.emplace_back(tokens, host(tokens));
      if (tokens <= tools_.positions)
        profile.attention.emplace_back(tokens, median([&] {
                                         return seconds_of([&] { tools_.layers_without_experts(tokens); }) /
                                                std::max(1u, sparse_layers_of_step(tools_.model.config));
                                       }));
    }
    profile.predict = median([&] { return seconds_of(tools_.score_one_token); });
    for (TimesOfTokens* times : {&profile.run, &profile.host, &profile.attention}) make_monotone(*times);
    return profile;
  }

 private:
  Measured median(const std::function<double()>& one) const {
    std::vector<double> samples;
    for (std::size_t i = 0; i < options_.repeats; ++i) {
      stop_if(options_.stop);
      samples.push_back(one());
    }
    return measured(std::move(samples));
  }

  LinkSpeed link(const std::function<void()>& beside) const {
    const double few =
        median([&] { return seconds_each([&] { return unit_.copy_little(); }, beside); }).median;
    const double all =
        median([&] { return seconds_each([&] { return unit_.copy_sample(place_); }, beside); }).median;
    const auto bytes = static_cast<double>(place_.bytes());
    // Few bytes that take as long as all of them, or nearly, are noise.
    constexpr double kMostRate = 1e12;
    const double moving = std::max(few < all ? all - few : all, bytes / kMostRate);
    return {bytes / moving, std::max(0.0, all - moving)};
  }

  // As a run does: paced where the device says so.
  void compute_on_host(std::uint32_t tokens) const {
    const auto compute = [&] { engine::compute_sample(tools_, place_, tokens); };
    device::HostPace* const pace = unit_.host_pace();
    if (pace == nullptr) return compute();
    const device::WeightUse weights{place_.bytes(), tokens};
    pace->run({&weights, 1}, compute);
  }

  Measured host(std::uint32_t tokens) {
    fill_sample_inputs(tools_, tokens);
    Load load(unit_, place_, what_.experts);
    return median([&] {
      load.refill();
      if (unit_.host_pace() == nullptr) return seconds_of([&] { compute_on_host(tokens); });
      return seconds_of_many(kLongEnough, [&] { compute_on_host(tokens); });
    });
  }

  // Seconds of one of many calls in a row, together at least `least` if kMost of them take that long.
  static double seconds_of_many(double least, const std::function<void()>& call) {
    double seconds = 0;
    std::size_t count = 0;
    while (count < kMost && seconds < least) {
      seconds += seconds_of(call);
      ++count;
    }
    return seconds / static_cast<double>(count);
  }

  const MeasureTools& tools_;
  DeviceUnit& unit_;
  const MeasureOptions& options_;
  ExpertSamples samples_;
  const DeviceMeasures what_;
  fetch::PlacedExpert place_;
  const std::function<void()> on_host_ = [this] { compute_on_host(1); };
};

}  // namespace

DeviceProfile measure_device(const MeasureTools& tools, DeviceUnit& unit, const std::string& name,
                             const DeviceMeasures& what, const MeasureOptions& options) {
  SLUICE_CHECK(options.repeats >= 1 && !tools.model.experts.empty());
  fill_sample_inputs(tools, 1);
  return Measurement(tools, unit, what, options).run(name);
}

}  // namespace sluice::engine
