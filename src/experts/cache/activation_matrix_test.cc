#include "experts/cache/activation_matrix.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "experts/cache/cache_policies.h"
#include "experts/cache/residency.h"
#include "experts/prefetch/prefetch.h"
#include "experts/registry.h"

namespace sluice::experts {
namespace {

// The same rule by definition: whole matrices, cosines from scratch.
struct Naive {
  static constexpr int kLayers = 3, kExperts = 7;
  using Matrix = std::vector<double>;
  Matrix now = Matrix(kLayers * kExperts);
  std::vector<Matrix> past;
  double predicted(int layer, int expert) const {
    const Matrix* best = &now;
    double most = -1;
    for (const Matrix& m : past) {
      double dot = 0, a = 0, b = 0;
      for (std::size_t i = 0; i < m.size(); ++i) dot += m[i] * now[i], a += m[i] * m[i], b += now[i] * now[i];
      const double cosine = a > 0 && b > 0 ? dot / std::sqrt(a * b) : 0;
      if (cosine >= most) most = cosine, best = &m;
    }
    double total = 0;
    for (int e = 0; e < kExperts; ++e)
      total += (*best)[static_cast<std::size_t>(layer) * kExperts + static_cast<std::size_t>(e)];
    return total > 0
               ? (*best)[static_cast<std::size_t>(layer) * kExperts + static_cast<std::size_t>(expert)] /
                     total
               : 0;
  }
};

TEST(ActivationHistory, PredictsByTheNearestMatrixOfThePast) {
  const unsigned seed = 31;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  ActivationHistory history;
  Naive naive;
  for (int step = 0; step < 6 * static_cast<int>(ActivationHistory::kSteps); ++step) {
    const int topic = step / 100 % 3;  // routing changes and returns
    if (step > 0 && step % static_cast<int>(ActivationHistory::kSteps) == 0) {
      naive.past.push_back(naive.now);
      naive.now.assign(naive.now.size(), 0);
    }
    for (int layer = 0; layer < Naive::kLayers; ++layer) {
      std::vector<ExpertId> used;
      for (int e = 0; e < Naive::kExperts; ++e)
        if (random() % 5 < (e % 3 == topic ? 4u : 1u))
          used.push_back({static_cast<std::uint16_t>(layer), static_cast<std::uint16_t>(e)});
      if (used.empty()) used.push_back({static_cast<std::uint16_t>(layer), 0});
      history.on_event(used);
      for (const ExpertId id : used) naive.now[std::size_t{id.layer} * Naive::kExperts + id.index] += 1;
    }
    if (step % 7 != 0) continue;
    for (int layer = 0; layer < Naive::kLayers; ++layer)
      for (int e = 0; e < Naive::kExperts; ++e)
        ASSERT_NEAR(history.predicted({static_cast<std::uint16_t>(layer), static_cast<std::uint16_t>(e)}),
                    naive.predicted(layer, e), 1e-12)
            << step << " " << layer << " " << e;
  }
  EXPECT_EQ(history.matrices(), 5u);
}

TEST(EamCache, EvictsWhatIsExpectedLeast) {
  class SameSizes final : public ExpertSizes {
   public:
    ExpertBytes bytes(ExpertId) const override { return {.full = 1}; }
  } sizes;
  Residency residency(make_cache("eam", {}), sizes, 2);
  const auto use = [&](std::uint16_t e) { return residency.on_event(std::vector<ExpertId>{{0, e}}); };
  for (int i = 0; i < 5; ++i) use(1);
  use(2);
  const EventOutcome outcome = use(3);  // 2 was used more recently, but 1 more often
  ASSERT_EQ(outcome.evicted.size(), 1u);
  EXPECT_EQ(outcome.evicted[0].id.index, 2);
}

TEST(EamPrefetch, ProposesWhatTheNextLayerUsedInThePast) {
  class Nothing final : public ResidencyView {
   public:
    Parts parts(ExpertId id) const override { return id.index == 5 ? Parts(Part::kFull) : Parts(); }
  } residency;
  const auto prefetch = find_prefetch("eam").make({});
  Routing routing[2];
  routing[0].choices = {{.expert = 1}, {.expert = 2}};
  routing[1].choices = {{.expert = 4}, {.expert = 5}};
  std::vector<PartRequest> proposals;
  for (std::uint32_t step = 0; step <= ActivationHistory::kSteps; ++step) {
    for (std::uint32_t layer = 0; layer < 2; ++layer) {
      proposals.clear();
      prefetch->propose({layer, 2, 8, &routing[layer], &residency}, proposals);
      if (step < ActivationHistory::kSteps || layer == 1) {
        EXPECT_TRUE(proposals.empty()) << step << " " << layer;
      }
      if (step == ActivationHistory::kSteps && layer == 0) {
        ASSERT_EQ(proposals.size(), 1u);  // 5 is resident
        EXPECT_EQ(proposals[0].id, (ExpertId{1, 4}));
      }
    }
  }
}

}  // namespace
}  // namespace sluice::experts
