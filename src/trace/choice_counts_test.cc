#include "trace/choice_counts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace sluice::trace {
namespace {

using testing::ElementsAre;

// Two layers of three experts, top 1: in each of some steps of two tokens the first layer uses 0 and 2, the
// second 1 twice.
class TwoLayers final : public RoutingTrace {
 public:
  explicit TwoLayers(std::uint32_t steps) : RoutingTrace("two"), events_(2 * steps) {
    header_.layers = 2;
    header_.experts = 3;
    header_.top_k = 1;
  }
  bool next(TraceEvent& event) override {
    if (event_ == events_) return false;
    const bool second = event_ % 2 == 1;
    choices_ = {{.expert = static_cast<std::uint16_t>(second ? 1 : 0)},
                {.expert = static_cast<std::uint16_t>(second ? 1 : 2)}};
    event = {.step = event_ / 2,
             .layer = event_ % 2,
             .phase = TracePhase::kDecode,
             .tokens = 2,
             .choices = choices_,
             .begin = begin_,
             .logits = {},
             .sequences = {},
             .token_ids = {}};
    ++event_;
    return true;
  }

 private:
  const std::uint32_t events_;
  std::uint32_t event_ = 0;
  std::vector<experts::Choice> choices_;
  std::vector<std::uint32_t> begin_ = {0, 1, 2};
};

TEST(ChoiceCounts, AreOfEachLayer) {
  TwoLayers trace(5);
  EXPECT_THAT(choice_counts(trace), ElementsAre(ElementsAre(5, 0, 5), ElementsAre(0, 10, 0)));
  TwoLayers stopped(5);
  EXPECT_THROW(choice_counts(stopped, [] { return true; }), Error);
}

}  // namespace
}  // namespace sluice::trace
