#include "eval/tasks/choice_tasks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "base/json/json.h"
#include "base/setting.h"
#include "eval/tasks/data_file.h"

namespace sluice::eval {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kRoot = SLUICE_SOURCE_DIR "/tests/";

struct Excerpt {
  const char *task, *file, *golden;
};
// Each layout that is published as one of these files; the other layouts are below.
const Excerpt kExcerpts[] = {{"arc-easy", "arc-easy.json", "arc-easy"},
                             {"arc-challenge", "arc-challenge.jsonl", "arc-challenge"},
                             {"hellaswag", "hellaswag.jsonl.zst", "hellaswag"},
                             {"openbookqa", "openbookqa.tsv", "openbookqa"},
                             {"boolq", "boolq.jsonl", "boolq"}};

// Prompts, answers and the right answer, as lm-evaluation-harness made them from the same items.
TEST(ChoiceTasks, PromptsAreThoseOfTheHarness) {
  ASSERT_EQ(std::size(kExcerpts), choice_tasks().size());
  for (const Excerpt& excerpt : kExcerpts) {
    SCOPED_TRACE(excerpt.task);
    const std::string path = kRoot + "data/eval/" + excerpt.file;
    const std::vector<ChoiceItem> items =
        find_choice_task(excerpt.task).read(read_data_file(path, kMiB), path);
    const Json golden = read_json_file(kRoot + "golden/eval/" + excerpt.golden + ".json").at("items");
    ASSERT_EQ(items.size(), golden.size());
    ASSERT_GE(items.size(), 12u);
    for (std::size_t i = 0; i < items.size(); ++i) {
      EXPECT_EQ(items[i].context, golden[i]["context"]);
      EXPECT_EQ(items[i].answer, golden[i]["label"]);
      ASSERT_EQ(items[i].choices.size(), golden[i]["continuations"].size());
      for (std::size_t choice = 0; choice < items[i].choices.size(); ++choice)
        EXPECT_EQ(" " + items[i].choices[choice], golden[i]["continuations"][choice]);
    }
  }
}

TEST(ChoiceTasks, ReadTheLayoutOfTheHub) {
  const std::string arc =
      R"({"question": "Why?", "choices": {"text": ["a", "b b"], "label": ["1", "2"]}, "answerKey": "2"})";
  for (const std::string& text : {arc, arc + "\n", "\n" + arc + "\r\n\n"}) {
    const std::vector<ChoiceItem> items = read_arc(text, "f");
    ASSERT_EQ(items.size(), 1u);
    EXPECT_EQ(items[0].context, "Question: Why?\nAnswer:");
    EXPECT_THAT(items[0].choices, ElementsAre("a", "b b"));
    EXPECT_EQ(items[0].answer, 1u);
  }
  const std::vector<ChoiceItem> book = read_openbookqa(
      R"({"question_stem": "Frogs", "choices": {"text": ["a", "b"], "label": ["A", "B"]}, "answerKey": "A "})",
      "f");
  EXPECT_EQ(book[0].context, "Frogs");
  EXPECT_EQ(book[0].answer, 0u);
  const std::vector<ChoiceItem> swag = read_hellaswag(
      R"({"activity_label": "Play", "ctx_a": "A [x\ny] man", "ctx_b": "THEN he", "endings": [" a [title] b", "[sub] c  d"], "label": "1"})",
      "f");
  EXPECT_EQ(swag[0].context, "Play: A [x\ny] man Then he");
  EXPECT_THAT(swag[0].choices, ElementsAre("a. b", " c d"));
  EXPECT_EQ(swag[0].answer, 1u);
  for (const char* yes : {"1", "true", "\"true\""}) {
    const std::string item = R"({"passage": "P", "question": "is it", "label": )" + std::string(yes) + "}";
    EXPECT_EQ(read_boolq(item, "f")[0].answer, 1u);
  }
  EXPECT_EQ(read_boolq(R"({"passage": "P", "question": "is it", "answer": false})", "f")[0].answer, 0u);
}

TEST(ChoiceTasks, WhatIsWrongIsNamedByLineAndField) {
  const auto message = [](const ChoiceTask& task, const std::string& text) {
    try {
      task.read(text, "data.jsonl");
      return std::string("nothing thrown");
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInvalid);
      return std::string(error.what());
    }
  };
  for (const ChoiceTask& task : choice_tasks()) {
    SCOPED_TRACE(task.name);
    EXPECT_THAT(message(task, ""), HasSubstr("no items"));
    EXPECT_THAT(message(task, "{}"), HasSubstr("data.jsonl, line 1"));
    EXPECT_THAT(message(task, "\n{\"question\": 7"), HasSubstr("data.jsonl, line 2"));
    EXPECT_THAT(message(task, "{\"question\": \"\xFF\"}"), HasSubstr("UTF-8"));
  }
  const ChoiceTask& arc = find_choice_task("arc-easy");
  EXPECT_THAT(
      message(
          arc,
          R"({"question": "Why?", "choices": {"text": ["a", "b"], "label": ["A", "B"]}, "answerKey": "C"})"),
      HasSubstr("line 1: the answer is none of the choices; expected one of A, B, found \"C\""));
  EXPECT_THAT(message(arc, R"([{"instruction": "Please", "answer": "answer1"}])"),
              HasSubstr("entry 1: instruction"));
  EXPECT_THAT(message(find_choice_task("openbookqa"), "ID\tQuestion Stem\tChoices\n"),
              HasSubstr("Answer Key"));
  EXPECT_THAT(message(find_choice_task("openbookqa"), "Question Stem\tChoices\tAnswer Key\nx\t(A) a (B) b\n"),
              HasSubstr("line 2"));
  EXPECT_THROW(find_choice_task("mmlu"), Error);
}

}  // namespace
}  // namespace sluice::eval
