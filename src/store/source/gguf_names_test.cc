#include "store/source/gguf_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sluice::store {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> firsts(const std::vector<std::string>& names) {
  std::vector<std::string> all;
  for (const GgufNames& model : gguf_models(names)) all.push_back(model.first);
  return all;
}

TEST(GgufNames, PartsAreOneModelThatIsNamedByItsFirst) {
  const std::vector<std::string> names = {"b.gguf", "q/a-00003-of-00003.gguf", "q/a-00001-of-00003.gguf",
                                          "q/a-00002-of-00003.gguf"};
  const std::vector<GgufNames> models = gguf_models(names);
  ASSERT_EQ(models.size(), 2u);
  EXPECT_EQ(models[0].first, "b.gguf");
  EXPECT_EQ(models[0].parts, 1u);
  EXPECT_EQ(models[1].first, "q/a-00001-of-00003.gguf");
  EXPECT_THAT(models[1].files,
              ElementsAre("q/a-00001-of-00003.gguf", "q/a-00002-of-00003.gguf", "q/a-00003-of-00003.gguf"));
  EXPECT_TRUE(models[0].whole());
  EXPECT_TRUE(models[1].whole());
}

TEST(GgufNames, AMissingPartIsMissedWhicheverItIs) {
  const std::vector<std::string> names = {"a-00002-of-00003.gguf", "a-00003-of-00003.gguf"};
  const std::vector<GgufNames> models = gguf_models(names);
  ASSERT_EQ(models.size(), 1u);
  EXPECT_EQ(models[0].first, "a-00001-of-00003.gguf");
  EXPECT_EQ(models[0].files.size(), 2u);
  EXPECT_FALSE(models[0].whole());
}

TEST(GgufNames, ModelsOfTwoCountsAreTwo) {
  EXPECT_THAT(firsts({"a-00001-of-00002.gguf", "a-00001-of-00003.gguf"}),
              ElementsAre("a-00001-of-00002.gguf", "a-00001-of-00003.gguf"));
}

TEST(GgufNames, OtherNumbersArePartOfTheName) {
  for (const char* name :
       {"a-0001-of-0002.gguf", "a-00003-of-00002.gguf", "a-00000-of-00002.gguf", "a-00001-of-0000x.gguf",
        "a_00001-of-00002.gguf", "-00001-of-00002.gguf", "a-+0001-of-00002.gguf", ".gguf"})
    EXPECT_THAT(firsts({name}), ElementsAre(name));
}

TEST(GgufNames, ProjectorsAndOtherFilesAreLeftOut) {
  EXPECT_THAT(firsts({"mmproj-f16.gguf", "q/A-MMPROJ.gguf", "a.gguf.incomplete", "a.json", "a.gguf",
                      "mmproj/b.gguf"}),
              ElementsAre("a.gguf", "mmproj/b.gguf"));
}

}  // namespace
}  // namespace sluice::store
