// The modelled clock of host and device: cases by hand, runs of layers against a list of events that advances
// from event to event, and orders and splits of few experts by enumeration.
#include "experts/schedule/hybrid_timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <string>

namespace sluice::experts {
namespace {

using testing::ElementsAre, testing::IsEmpty;

ExpertId id(std::size_t index, std::size_t layer = 0) {
  return {static_cast<std::uint16_t>(layer), static_cast<std::uint16_t>(index)};
}

TEST(HybridTimeline, RunsBothSidesAtOnce) {
  HybridTimeline timeline;
  EXPECT_EQ(timeline.decide({.sync = 1, .policy = 2, .launch = 1, .predict = 3, .next_gate = 4}), 3);
  const double host[] = {5, 4}, resident[] = {1, 1};
  const LinkLoad loads[] = {{id(7), 6, 1}, {id(8), 6, 2}};
  const HybridTimes& times = timeline.run({.shared = 2,
                                           .host = host,
                                           .rows = 2,
                                           .resident = resident,
                                           .loads = loads,
                                           .prefetches = {},
                                           .updates = {}});
  EXPECT_EQ(times.resident, 8);  // 3, a launch, 2 + 1 + 1
  EXPECT_EQ(times.predicted, 11);
  EXPECT_THAT(timeline.load_arrivals(), ElementsAre(9, 15));
  EXPECT_THAT(timeline.load_ends(),
              ElementsAre(13, 18));  // the first waits for the device, the second for the link
  EXPECT_EQ(times.host, 13);         // activations down, 5 + 4
  EXPECT_EQ(times.rows, 17);         // behind the second load
  EXPECT_EQ(times.combined, 18);
  EXPECT_EQ(times.end, 22);
  EXPECT_EQ(timeline.now(), 22);
  EXPECT_EQ(timeline.link().loads, 12);
  EXPECT_EQ(timeline.link().rows, 2);
}

TEST(HybridTimeline, AnEmptyLayerTakesItsOwnCostsAlone) {
  HybridTimeline timeline;
  timeline.decide({.sync = 1, .policy = 2, .launch = 9, .predict = 0, .next_gate = 4});
  const HybridTimes& times = timeline.run({.rows = 9});
  EXPECT_EQ(times.host, 3);
  EXPECT_EQ(times.end, 7);
}

TEST(HybridTimeline, BackgroundGivesWayAndGoesOn) {
  HybridTimeline timeline;
  const HybridCosts costs{.sync = 1, .policy = 1, .launch = 0, .predict = 1, .next_gate = 10};
  timeline.decide(costs);
  const LinkTransfer prefetches[] = {{id(1, 1), 4}, {id(2, 1), 20}, {id(3, 1), 5}}, updates[] = {{id(9), 6}};
  const double resident[] = {1};
  timeline.run({.resident = resident, .prefetches = prefetches, .updates = updates});
  // Combined and predicted at 4, known at 5: the link carries the update until 5, 1 until 9, then 2. The
  // layer ends at 14.
  EXPECT_EQ(timeline.now(), 14);
  ASSERT_EQ(timeline.arrivals().size(), 1u);
  EXPECT_EQ(timeline.arrivals()[0].id, id(1, 1));
  EXPECT_EQ(timeline.arrivals()[0].time, 9);
  EXPECT_EQ(timeline.decide(costs), 16);
  EXPECT_EQ(timeline.remaining(id(1, 1)), 0);
  EXPECT_EQ(timeline.remaining(id(2, 1)), 13);
  EXPECT_EQ(timeline.remaining(id(3, 1)), 5);
  EXPECT_EQ(timeline.remaining(id(9)), 5);
  // 2 is wanted: it is loaded for what is left of it. 3 has not started and is withdrawn. The update follows.
  const LinkLoad loads[] = {{id(2, 1), 20, 1}};
  timeline.run({.resident = resident, .loads = loads});
  EXPECT_EQ(timeline.load_arrivals()[0], 29);
  EXPECT_EQ(timeline.withdrawn(), 1u);
  EXPECT_EQ(timeline.remaining(id(3, 1)), 0);
  ASSERT_EQ(timeline.arrivals().size(), 1u);
  EXPECT_EQ(timeline.arrivals()[0].id, id(9));
  EXPECT_TRUE(timeline.arrivals()[0].is_update);
  EXPECT_EQ(timeline.arrivals()[0].time, 34);
}

TEST(HybridTimeline, AStartedPrefetchThatNobodyWantsGoesOn) {
  HybridTimeline timeline;
  const HybridCosts costs{.next_gate = 1};
  timeline.decide(costs);
  const LinkTransfer prefetches[] = {{id(1, 1), 4}};
  timeline.run({.prefetches = prefetches});
  timeline.decide(costs);
  const LinkLoad loads[] = {{id(5, 1), 10, 0}};
  timeline.run({.loads = loads});
  EXPECT_EQ(timeline.withdrawn(), 0u);
  EXPECT_EQ(timeline.remaining(id(1, 1)), 2);  // one unit before the load, one behind it
  EXPECT_THAT(timeline.arrivals(), IsEmpty());
}

TEST(HybridTimeline, WithOneBufferLinkAndDeviceTakeTurns) {
  const LinkLoad loads[] = {{id(1), 4, 2}, {id(2), 4, 2}, {id(3), 4, 2}};
  const double host[] = {3};
  for (const auto& [buffers, end, rows] : {std::tuple(1u, 18.0, 7.0), {2u, 14.0, 13.0}}) {
    HybridTimeline timeline;
    timeline.decide({});
    const HybridTimes& times = timeline.run({.host = host, .rows = 1, .loads = loads, .buffers = buffers});
    EXPECT_EQ(times.device, end) << buffers;
    // The rows use the link while the first load is computed: from 4 on, without waiting for the others.
    EXPECT_EQ(times.rows, buffers == 1 ? 5 : rows) << buffers;
  }
}

TEST(HybridTimeline, ReturnsGoUpBesideAllElse) {
  HybridTimeline timeline;
  const HybridCosts costs{.sync = 1, .next_gate = 1};
  timeline.decide(costs);
  const LinkLoad loads[] = {{id(1), 4, 1}};
  const LinkTransfer returns[] = {{id(2), 4}, {id(3), 4}, {id(4), 4}};
  timeline.run({.loads = loads, .returns = returns});
  EXPECT_EQ(timeline.load_arrivals()[0], 5);
  EXPECT_EQ(timeline.now(), 7);  // 2 has gone up since 5, 3 has begun
  EXPECT_EQ(timeline.decide(costs), 8);
  EXPECT_EQ(timeline.returning(id(2)), 0);
  EXPECT_EQ(timeline.returning(id(3)), 1);
  EXPECT_EQ(timeline.returning(id(4)), 4);
  EXPECT_EQ(timeline.receive(id(2)), 8);
  EXPECT_EQ(timeline.receive(id(4)), 12);  // it overtakes 3
  EXPECT_EQ(timeline.returning(id(3)), 1);
  timeline.withdraw_return(id(3));
  EXPECT_EQ(timeline.run({}).end, 13);
  EXPECT_EQ(timeline.returning(id(3)), 0);
  EXPECT_EQ(timeline.link().returns, 4 + 3 + 4);
  EXPECT_EQ(timeline.link().loads, 4);
}

// What goes up and what goes down take turns on the only lane. Returns are of the class of updates.
TEST(HybridTimeline, ReturnsShareTheLaneOfALinkThatIsHalfDuplex) {
  HybridTimeline timeline(false);
  const HybridCosts costs{.sync = 1, .next_gate = 4};
  timeline.decide(costs);
  const LinkLoad loads[] = {{id(1), 4, 1}};
  const LinkTransfer prefetches[] = {{id(5, 1), 1}}, updates[] = {{id(6), 2}};
  const LinkTransfer returns[] = {{id(2), 2}, {id(3), 4}};
  timeline.run({.loads = loads, .prefetches = prefetches, .updates = updates, .returns = returns});
  // The load until 5, the prefetch until 6, then the returns until 10, where the layer ends.
  EXPECT_EQ(timeline.load_arrivals()[0], 5);
  EXPECT_EQ(timeline.now(), 10);
  EXPECT_EQ(timeline.arrivals().size(), 1u);
  EXPECT_EQ(timeline.returning(id(2)), 0);
  EXPECT_EQ(timeline.returning(id(3)), 2);
  EXPECT_EQ(timeline.remaining(id(6)), 2);
  EXPECT_EQ(timeline.remaining(id(3)), 0);  // nothing of it goes down
  EXPECT_EQ(timeline.decide(costs), 11);
  EXPECT_EQ(timeline.returning(id(3)), 1);
  const LinkTransfer more[] = {{id(4), 3}};
  timeline.run(
      {.returns = more});  // until 15: the first return until 12, the update until 14, then some of 4
  EXPECT_EQ(timeline.returning(id(4)), 2);
  EXPECT_EQ(timeline.remaining(id(6)), 0);
  EXPECT_EQ(timeline.decide(costs), 16);
  EXPECT_EQ(timeline.receive(id(4)), 17);
  const LinkLoad next[] = {{id(7), 2, 0}};
  timeline.run({.loads = next});
  EXPECT_EQ(timeline.load_arrivals()[0], 19);
  EXPECT_EQ(timeline.link().returns, 2 + 4 + 3);
  EXPECT_EQ(timeline.link().updates, 2);
}

// ---- A list of events: lanes with jobs; time goes from one event to the next.

struct Job {
  enum Lane { kHost, kDevice, kLink, kUp } lane;
  double left;
  double released = 0;
  std::vector<std::size_t> after = {};  // jobs that must have ended
  int rank = 0;                         // on the link: the lower goes first
  bool started = false;
  double end = -1;  // -1: not yet
};

class EventList {
 public:
  std::size_t add(Job job) {
    jobs_.push_back(std::move(job));
    return jobs_.size() - 1;
  }
  Job& job(std::size_t index) { return jobs_[index]; }
  double time() const { return time_; }
  void drop(std::size_t index) { jobs_[index].end = -2; }

  // Until `job` has ended, or until a time. Background transfers that end at that time have ended.
  double run_until_end_of(std::size_t index) {
    while (jobs_[index].end == -1) step(kNever);
    return jobs_[index].end;
  }
  void run_until(double time) {
    while (time_ < time) step(time);
  }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  bool is_ready(const Job& job) const {
    return job.end == -1 && job.released <= time_ &&
           std::ranges::all_of(job.after, [&](std::size_t i) { return jobs_[i].end >= 0; });
  }
  // Host and device work in the order of their jobs: the first that has not ended, if it is ready.
  Job* running(Job::Lane lane) {
    Job* best = nullptr;
    for (Job& job : jobs_) {
      if (job.lane != lane || job.end != -1) continue;
      if (lane < Job::kLink) return is_ready(job) ? &job : nullptr;
      if (is_ready(job) && (best == nullptr || job.rank < best->rank)) best = &job;
    }
    return best;
  }
  void step(double until) {
    // Jobs without work end at once, one by one, since others may wait for them.
    for (const Job::Lane lane : {Job::kHost, Job::kDevice, Job::kLink, Job::kUp}) {
      Job* const job = running(lane);
      if (job != nullptr && job->left == 0) {
        job->end = time_;
        return;
      }
    }
    double next = until;
    for (const Job::Lane lane : {Job::kHost, Job::kDevice, Job::kLink, Job::kUp})
      if (const Job* const job = running(lane)) next = std::min(next, time_ + job->left);
    for (const Job& job : jobs_)
      if (job.end == -1 && job.released > time_) next = std::min(next, job.released);
    ASSERT_LT(next, kNever) << "nothing can happen any more";
    std::vector<Job*> busy;
    for (const Job::Lane lane : {Job::kHost, Job::kDevice, Job::kLink, Job::kUp})
      if (Job* const job = running(lane)) busy.push_back(job);
    for (Job* const job : busy) {
      job->started = job->started || next > time_;
      job->left -= next - time_;
      if (job->left == 0) job->end = next;
    }
    time_ = next;
  }

  std::vector<Job> jobs_;
  double time_ = 0;
};

class HybridTimelineOfALink : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(EachDuplex, HybridTimelineOfALink, testing::Values(true, false),
                         [](const auto& full) { return full.param ? "full" : "half"; });

// Whole numbers, so that both clocks are exact.
TEST_P(HybridTimelineOfALink, EqualsAListOfEvents) {
  const bool full_duplex = GetParam();
  constexpr std::uint64_t kSeed = 41;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937_64 random(kSeed);
  const auto whole = [&](std::uint64_t most) { return static_cast<double>(random() % (most + 1)); };
  std::uint64_t arrivals = 0, promoted = 0, withdrawn = 0, received = 0;
  for (int run = 0; run < 3000 && !testing::Test::HasFailure(); ++run) {
    SCOPED_TRACE("run " + std::to_string(run));
    HybridTimeline timeline(full_duplex);
    EventList events;
    struct Sent {
      std::size_t job;
      bool is_update;
    };
    std::map<ExpertId, Sent> sent;  // on the link
    std::map<ExpertId, std::size_t> returned;
    double carried_up = 0;
    std::size_t gate = events.add({Job::kDevice, 0});
    events.run_until_end_of(gate);
    std::uint16_t fresh = 0;
    int link_order = 0;
    for (int layer = 0; layer < 5; ++layer) {
      SCOPED_TRACE("layer " + std::to_string(layer));
      const HybridCosts costs{whole(2), whole(2), whole(1), whole(4), whole(12)};
      double decided = timeline.decide(costs);
      EXPECT_EQ(decided, events.job(gate).end + costs.sync + costs.policy);
      events.run_until(decided);
      for (const auto& [one, job] : returned) {
        const bool on_way = events.job(job).end == -1;
        EXPECT_EQ(timeline.returning(one), on_way ? events.job(job).left : 0);
        if (on_way && random() % 8 == 0) {
          timeline.withdraw_return(one);
          events.drop(job);
        }
        if (random() % 4 != 0 || events.job(job).end == -2) continue;
        received += on_way ? 1 : 0;
        events.job(job).rank = -1000000;
        decided = std::max(decided, events.run_until_end_of(job));
        EXPECT_EQ(timeline.receive(one), decided);
      }
      const std::size_t decision = events.add({Job::kHost, 0, decided});
      std::vector<double> host(random() % 4), resident(random() % 3);
      for (double& t : host) t = 1 + whole(8);
      for (double& t : resident) t = whole(3);
      const double shared = whole(2), rows_time = whole(3);

      std::vector<LinkLoad> loads;
      std::vector<LinkTransfer> prefetches, updates;
      for (const auto& [known, job] : sent) {
        EXPECT_EQ(timeline.remaining(known), events.job(job.job).end >= 0 ? 0 : events.job(job.job).left);
        if (events.job(job.job).end < 0 && random() % 2 == 0) loads.push_back({known, 99, whole(3)});
      }
      promoted += loads.size();
      for (std::uint64_t n = random() % 3; n > 0; --n) loads.push_back({id(fresh++), whole(9), whole(3)});
      std::shuffle(loads.begin(), loads.end(), random);
      for (std::uint64_t n = random() % 4; n > 0; --n) prefetches.push_back({id(fresh++), 1 + whole(9)});
      for (std::uint64_t n = random() % 3; n > 0; --n) updates.push_back({id(fresh++), 1 + whole(9)});

      std::vector<LinkTransfer> returns;
      for (std::uint64_t n = random() % 3; n > 0; --n) {
        returns.push_back({id(fresh++), 1 + whole(40)});
        carried_up += returns.back().time;
        // On the one lane of a half duplex link they take turns with updates.
        const Job::Lane lane = full_duplex ? Job::kUp : Job::kLink;
        returned[returns.back().id] = events.add({lane, returns.back().time, 0, {}, 1000000 + ++link_order});
      }

      // The same layer as jobs.
      const auto buffers = static_cast<std::uint32_t>(1 + random() % 4);
      const bool launches = shared > 0 || !resident.empty();
      const double group =
          std::accumulate(resident.begin(), resident.end(), shared) + (launches ? costs.launch : 0);
      events.add({Job::kDevice, group, 0, {decision}});
      const std::size_t predicted = events.add({Job::kDevice, costs.predict, 0, {decision}});
      std::size_t device = predicted;
      std::vector<std::size_t> transfers, computed;
      for (const LinkLoad& load : loads) {
        double transfer = load.transfer;
        if (const auto known = sent.find(load.id); known != sent.end()) {
          transfer = events.job(known->second.job).left;
          events.drop(known->second.job);
          sent.erase(known);
        }
        std::vector<std::size_t> after = {decision};
        if (computed.size() >= buffers) after.push_back(computed[computed.size() - buffers]);
        transfers.push_back(events.add({Job::kLink, transfer, 0, after, -1000000 + link_order++}));
        device = events.add({Job::kDevice, costs.launch + load.compute, 0, {transfers.back()}});
        computed.push_back(device);
      }
      std::erase_if(sent, [&](const auto& one) {
        Job& job = events.job(one.second.job);
        const bool gone = !one.second.is_update && job.end == -1 && !job.started;
        if (gone) {
          events.drop(one.second.job);
          ++withdrawn;
        }
        return gone;
      });
      std::size_t rows = decision;
      if (!host.empty()) {
        events.add({Job::kHost, costs.sync, 0, {decision}});
        std::size_t last = decision;
        for (double t : host) last = events.add({Job::kHost, t, 0, {decision}});
        rows = events.add({Job::kLink, rows_time, 0, {last}, -500000});
      }
      const std::size_t combined = events.add({Job::kDevice, 0, 0, {device, rows}});
      gate = events.add({Job::kDevice, costs.next_gate, 0, {combined}});

      const HybridTimes& times =
          timeline.run({shared, host, rows_time, resident, loads, buffers, prefetches, updates, returns});
      // When background transfers are sent depends on the layer alone, as nothing of it gives way to them.
      for (const LinkTransfer& one : prefetches)
        sent[one.id] = {events.add({Job::kLink, one.time, times.predicted + costs.sync, {}, ++link_order}),
                        false};
      for (const LinkTransfer& one : updates)
        sent[one.id] = {events.add({Job::kLink, one.time, times.combined, {}, 1000000 + ++link_order}), true};
      EXPECT_EQ(times.end, events.run_until_end_of(gate));
      events.run_until(times.end);
      EXPECT_EQ(times.predicted, events.job(predicted).end);
      EXPECT_EQ(times.device, events.job(device).end);
      EXPECT_EQ(times.rows, host.empty() ? decided : events.job(rows).end);
      EXPECT_EQ(times.combined, events.job(combined).end);
      for (std::size_t i = 0; i < loads.size(); ++i) {
        EXPECT_EQ(timeline.load_arrivals()[i], events.job(transfers[i]).end);
        EXPECT_EQ(timeline.load_ends()[i], events.job(computed[i]).end);
      }
      for (const LinkArrival& arrival : timeline.arrivals()) {
        const auto one = sent.find(arrival.id);
        ASSERT_NE(one, sent.end());
        EXPECT_EQ(arrival.time, events.job(one->second.job).end);
        EXPECT_EQ(arrival.is_update, one->second.is_update);
        sent.erase(one);
        ++arrivals;
      }
      for (const auto& [known, job] : sent) EXPECT_EQ(events.job(job.job).end, -1) << "arrived unnoticed";
    }
    EXPECT_LE(timeline.withdrawn(), withdrawn);
    for (const auto& [one, job] : returned)
      if (events.job(job).end < 0) carried_up -= events.job(job).left;
    EXPECT_EQ(timeline.link().returns, carried_up);
  }
  EXPECT_GT(arrivals, 1000u);
  EXPECT_GT(promoted, 1000u);
  EXPECT_GT(withdrawn, 1000u);
  EXPECT_GT(received, 1000u);
}

// Loads that take the link equally long are best sent by the device's time descending: no other order of up
// to six ends the layer earlier (Johnson's rule for two machines).
TEST(HybridTimeline, NoOrderOfEqualLoadsBeatsTheLongestFirst) {
  constexpr std::uint64_t kSeed = 43;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937_64 random(kSeed);
  std::size_t orders = 0;
  for (int instance = 0; instance < 200; ++instance) {
    std::vector<LinkLoad> loads(random() % 7);
    const double transfer = 1 + static_cast<double>(random() % 6);
    for (std::size_t i = 0; i < loads.size(); ++i)
      loads[i] = {id(i), transfer, static_cast<double>(random() % 12)};
    const auto end_of = [&](std::span<const LinkLoad> order) {
      HybridTimeline timeline;
      timeline.decide({});
      return timeline.run({.shared = 2, .loads = order}).end;
    };
    std::ranges::sort(loads, std::ranges::greater(), &LinkLoad::compute);
    const double best = end_of(loads);
    std::ranges::sort(loads, {}, &LinkLoad::id);
    do {
      EXPECT_GE(end_of(loads), best) << "instance " << instance;
      ++orders;
    } while (std::ranges::next_permutation(loads, {}, &LinkLoad::id).found);
  }
  std::printf("seed %llu: %zu orders\n", static_cast<unsigned long long>(kSeed), orders);
  EXPECT_GT(orders, 10000u);
}

// Over all splits of up to six experts: no layer ends before what each side has to do, and the one that
// leaves everything to the host or to the link ends as the sums say.
TEST(HybridTimeline, EverySplitKeepsToTheSumsOfItsSides) {
  constexpr std::uint64_t kSeed = 47;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  std::mt19937_64 random(kSeed);
  for (int instance = 0; instance < 300 && !testing::Test::HasFailure(); ++instance) {
    const std::size_t n = random() % 7;
    std::vector<double> host_time(n), compute(n);
    for (std::size_t i = 0; i < n; ++i) {
      host_time[i] = 1 + static_cast<double>(random() % 9);
      compute[i] = static_cast<double>(random() % 4);
    }
    const double transfer = 1 + static_cast<double>(random() % 6);
    const HybridCosts costs{.sync = 1, .policy = 1, .launch = 1, .predict = 2, .next_gate = 3};
    const double rows_time = 1;
    for (std::uint32_t set = 0; set < 1u << n; ++set) {
      std::vector<double> host;
      std::vector<LinkLoad> loads;
      double device = 0;
      for (std::size_t i = 0; i < n; ++i) {
        if ((set >> i & 1) == 0) {
          host.push_back(host_time[i]);
        } else {
          loads.push_back({id(i), transfer, compute[i]});
          device += costs.launch + compute[i];
        }
      }
      const double link = transfer * static_cast<double>(loads.size());
      const double cpu = std::accumulate(host.begin(), host.end(), 0.0);
      HybridTimeline timeline;
      const double decided = timeline.decide(costs);
      const HybridTimes& times = timeline.run({.host = host, .rows = rows_time, .loads = loads});
      const double host_path = host.empty() ? 0 : costs.sync + cpu + rows_time;
      const double load_path = loads.empty() ? 0 : link + costs.launch + loads.back().compute;
      EXPECT_GE(times.combined, decided + std::max({host_path, load_path, costs.predict + device}));
      EXPECT_LE(times.combined, decided + costs.predict + costs.sync + cpu + rows_time + link + device);
      if (loads.empty()) {
        EXPECT_EQ(times.combined, decided + std::max(host_path, costs.predict));
      }
      EXPECT_EQ(times.end, times.combined + costs.next_gate);
    }
  }
}

}  // namespace
}  // namespace sluice::experts
