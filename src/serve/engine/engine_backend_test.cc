#include "serve/engine/engine_backend.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"

namespace sluice::serve {
namespace {

Refusal::Reason refused(EngineBackend& backend) {
  TextRequest request;
  request.prompt = {1};
  const auto outcome = backend.submit({request}, std::make_shared<EventQueue>());
  EXPECT_TRUE(std::holds_alternative<Refusal>(outcome));
  return std::get<Refusal>(outcome).reason;
}

TEST(EngineBackend, SaysWhyAModelCannotBeLoaded) {
  EngineBackendOptions options;
  options.card.id = "m";
  EngineBackend backend(options);
  EXPECT_EQ(backend.state().phase, Phase::kLoading);
  EXPECT_EQ(refused(backend), Refusal::Reason::kLoading);
  backend.load([](const std::function<void(double)>& progress) -> std::unique_ptr<LoadedModel> {
    progress(0.5);
    throw Error(ErrorKind::kCorrupt, "the weights are damaged").in("weights");
  });
  EXPECT_THROW(backend.wait_until_loaded(), Error);
  EXPECT_NE(backend.state().failure.find("the weights are damaged"), std::string::npos);
  EXPECT_EQ(backend.state().phase, Phase::kLoading);
  EXPECT_EQ(backend.state().progress, 0.5);
  EXPECT_EQ(refused(backend), Refusal::Reason::kLoading);
  EXPECT_EQ(backend.served(), nullptr);
  EXPECT_EQ(backend.card().id, "m");
  EXPECT_EQ(backend.stats_json(), "{}");
}

TEST(EngineBackend, IsTakenDownWithoutAModel) {
  EngineBackend backend({});
  backend.begin_drain();
  EXPECT_EQ(backend.state().phase, Phase::kDraining);
}

}  // namespace
}  // namespace sluice::serve
