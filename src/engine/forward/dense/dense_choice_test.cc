#include "engine/forward/dense/dense_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace sluice::engine {
namespace {

using ::testing::HasSubstr;

// 24 layers of 60 experts of 10 MB, four of them used by a token: 96 reads of 6 ms if none is in memory.
Profile some_profile() {
  Profile profile;
  profile.model.layers = 24;
  profile.model.experts = 60;
  profile.model.top_k = 4;
  profile.model.tensors = 3;
  profile.model.chunks = 4;
  profile.model.full = 10'000'000;
  profile.u.median = 1.2e-3;
  profile.v.median = 0.2e-3;
  profile.p.median = 1e-3;
  profile.p_packed = Measured{1.1e-3, 0};
  return profile;
}

DenseQuestion some_question() {
  DenseQuestion question;
  question.either_way = 1'000'000'000;
  question.words = 1'100'000'000;
  question.packed = 770'000'000;
  question.experts_beside_words = 400;
  question.experts_beside_packed = 433;
  return question;
}

TEST(DenseChoiceTest, PackedUnlessMeasuredToBeWorse) {
  const DenseChoice unmeasured = choose_dense_view(some_question(), nullptr);
  EXPECT_EQ(unmeasured.view, DenseView::kPacked);
  EXPECT_THAT(unmeasured.why, HasSubstr("takes 314.71 MiB less; what it costs is not measured"));

  DenseQuestion slow = some_question();
  slow.fast_packed = false;
  EXPECT_EQ(choose_dense_view(slow, nullptr).view, DenseView::kWords);
  const Profile measured = some_profile();
  EXPECT_EQ(choose_dense_view(slow, &measured).view, choose_dense_view(some_question(), &measured).view);
  slow.words_fit = false;
  EXPECT_EQ(choose_dense_view(slow, nullptr).view, DenseView::kPacked);
  Profile profile = some_profile();
  profile.p_packed = std::nullopt;
  EXPECT_EQ(choose_dense_view(some_question(), &profile).view, DenseView::kPacked);
  profile.p_packed = profile.p;
  const DenseChoice equal = choose_dense_view(some_question(), &profile);
  EXPECT_EQ(equal.view, DenseView::kPacked);
  EXPECT_THAT(equal.why, HasSubstr("is no slower"));
}

// Words of 100 experts, 0.1 ms longer each: 10 ms per token. 33 of 1440 experts more in memory: 96 · 33 /
// 1440 reads of 6 ms fewer, 13.2 ms.
TEST(DenseChoiceTest, TimesAreWeighed) {
  Profile profile = some_profile();
  const DenseChoice faster = choose_dense_view(some_question(), &profile);
  EXPECT_EQ(faster.view, DenseView::kPacked);
  EXPECT_THAT(faster.why, HasSubstr("10.0 ms a token longer to compute, 13.2 ms less to read"));
  profile.p_packed = Measured{1.14e-3, 0};
  EXPECT_EQ(choose_dense_view(some_question(), &profile).view, DenseView::kWords);
  // All experts fit either way: smaller memory gains nothing.
  profile.p_packed = Measured{1.01e-3, 0};
  DenseQuestion roomy = some_question();
  roomy.experts_beside_words = roomy.experts_beside_packed = 1440;
  EXPECT_EQ(choose_dense_view(roomy, &profile).view, DenseView::kWords);
  EXPECT_EQ(choose_dense_view(some_question(), &profile).view, DenseView::kPacked);
}

TEST(DenseChoiceTest, WhatFitsIsTaken) {
  Profile profile = some_profile();
  profile.p_packed = Measured{1, 0};
  DenseQuestion tight = some_question();
  tight.words_fit = false;
  const DenseChoice choice = choose_dense_view(tight, &profile);
  EXPECT_EQ(choice.view, DenseView::kPacked);
  EXPECT_THAT(choice.why, HasSubstr("words would not fit"));
}

TEST(DenseChoiceTest, WhatIsAskedForIsObeyedOrRefused) {
  EXPECT_EQ(asked_dense_view(DenseView::kWords, 0, "m", "none").view, DenseView::kWords);
  EXPECT_EQ(asked_dense_view(DenseView::kPacked, 1, "m", "native").view, DenseView::kPacked);
  const auto refusal = [](const std::string& codec) -> std::string {
    try {
      asked_dense_view(DenseView::kPacked, 0, "m.sluice", codec);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kUsage);
      return error.what();
    }
    return "obeyed";
  };
  EXPECT_THAT(refusal("zstd"), HasSubstr("m.sluice: --dense packed"));
  EXPECT_THAT(refusal("zstd"), HasSubstr("found weights stored with codec zstd; leave --dense out, or pack"));
  EXPECT_THAT(refusal("native"), ::testing::EndsWith("stored so; leave --dense out"));
}

TEST(DenseChoiceTest, WhereNothingIsStoredSoWordsAreKept) {
  DenseQuestion none = some_question();
  none.either_way = 0;
  EXPECT_EQ(choose_dense_view(none, nullptr).view, DenseView::kWords);
}

}  // namespace
}  // namespace sluice::engine
