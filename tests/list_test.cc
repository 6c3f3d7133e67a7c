// `list`, and commands that are given the name of a model instead of its path, among caches of other
// programs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/files/scratch_directory.h"
#include "base/json/json.h"
#include "bundled_model.h"

namespace {

namespace fs = std::filesystem;
using sluice::Json;
using sluice::program::kModel;
using sluice::program::Outcome;
using sluice::program::run_command;
using sluice::testing::ScratchDirectory;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kGguf = SLUICE_SOURCE_DIR "/tests/data/formats/container.gguf";

class Local : public ::testing::Test {
 protected:
  // The program where nothing but this home says where models lie.
  Outcome sluice(const std::string& words) const {
    return run_command("env -i HOME='" + home_.path() + "' PATH=\"$PATH\" COLUMNS=200 '" SLUICE_PROGRAM "' " +
                       words);
  }
  std::string snapshot(const std::string& repository) const {
    return home_.file(".cache/huggingface/hub/models--" + repository + "/snapshots/c0ffee");
  }
  // The bundled model as the hub's client would have it: links to files.
  void put_fable() const {
    fs::create_directories(snapshot("org--fable"));
    for (const auto& file : fs::directory_iterator(kModel))
      fs::create_symlink(file.path(), fs::path(snapshot("org--fable")) / file.path().filename());
  }
  void put_gguf(const std::string& name) const {
    const fs::path path = home_.file(".lmstudio/models/" + name);
    fs::create_directories(path.parent_path());
    fs::create_symlink(kGguf, path);
  }
  Json listed() const { return Json::parse(sluice("list --json").out); }

  ScratchDirectory home_;
};

TEST_F(Local, NothingFoundIsOneLineThatSaysWhereAndNoFailure) {
  const Outcome outcome = sluice("list");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "");
  EXPECT_THAT(outcome.out, HasSubstr("No models are here. Looked in "));
  for (const char* place :
       {"/.cache/huggingface/hub", "/.cache/llama.cpp", "/.lmstudio/models", "/.ollama/models"})
    EXPECT_THAT(outcome.out, HasSubstr(home_.path() + place));
  EXPECT_EQ(listed().at("models").size(), 0u);
  EXPECT_EQ(listed().at("places").size(), 5u);
}

TEST_F(Local, ListShowsWhatRunsAndWhyTheOthersDoNot) {
  put_fable();
  put_gguf("pub/repo/a-00001-of-00002.gguf");
  home_.write(".cache/huggingface/hub/models--org--dense/snapshots/c/config.json",
              R"({"model_type":"llama","hidden_size":8})");
  home_.write(".cache/huggingface/hub/models--org--other/snapshots/c/config.json",
              R"({"model_type":"new_moe","text_config":{"num_experts":8}})");
  for (const char* name : {"dense", "other"})
    fs::copy_file(kModel + "/model.safetensors",
                  home_.file(std::string(".cache/huggingface/hub/models--org--") + name +
                             "/snapshots/c/model.safetensors"));
  const Json models = listed().at("models");
  ASSERT_EQ(models.size(), 4u);
  EXPECT_EQ(models[0].at("name"), "org/dense");
  EXPECT_EQ(models[0].at("runs"), false);
  EXPECT_EQ(models[0].at("reason"), "not a mixture of experts");
  EXPECT_EQ(models[1].at("name"), "org/fable");
  EXPECT_EQ(models[1].at("runs"), true) << models[1].dump();
  EXPECT_TRUE(models[1].at("reason").is_null());
  EXPECT_EQ(models[1].at("form"), "safetensors");
  EXPECT_EQ(models[1].at("program"), "huggingface");
  EXPECT_EQ(models[1].at("path"), snapshot("org--fable"));
  EXPECT_EQ(models[1].at("bytes"), fs::file_size(kModel + "/model.safetensors"));
  EXPECT_EQ(models[2].at("name"), "org/other");
  EXPECT_THAT(models[2].at("reason").get<std::string>(), HasSubstr("new_moe"));
  EXPECT_EQ(models[3].at("name"), "pub/repo/a-00001-of-00002.gguf");
  EXPECT_EQ(models[3].at("files"), 2u);
  EXPECT_EQ(models[3].at("reason"), "1 of 2 parts are missing");

  const Outcome table = sluice("list");
  EXPECT_EQ(table.code, 0);
  EXPECT_EQ(table.err, "");
  EXPECT_THAT(table.out, ::testing::ContainsRegex("org/fable +Hugging Face +safetensors +34[^\n]* yes\n"));
  EXPECT_THAT(table.out, HasSubstr("Does not run (not a mixture of experts): org/dense\n"));
  EXPECT_THAT(table.out,
              HasSubstr("Does not run (1 of 2 parts are missing): pub/repo/a-00001-of-00002.gguf\n"));
}

TEST_F(Local, NamesAreShownSafely) {
  fs::create_directories(home_.file(".cache/llama.cpp"));
  fs::create_symlink(kGguf, home_.file(".cache/llama.cpp/a \x1b[31m\n.gguf"));
  for (const char* words : {"list", "list --json"}) {
    const std::string out = sluice(words).out;
    EXPECT_EQ(out.find('\x1b'), std::string::npos) << words;
  }
  EXPECT_THAT(sluice("list").out, HasSubstr("a \\x1b[31m\\x0a.gguf"));
}

// The path is told once, and the text is that of the path.
TEST_F(Local, RunTakesANameInPlaceOfAPath) {
  put_fable();
  const std::string rest = " -p Once -n 4 --memory 64MiB --temp 0";
  const Outcome by_path = sluice("run " + kModel + rest + " -q");
  ASSERT_EQ(by_path.code, 0) << by_path.err;
  for (const char* model : {"org/fable", "-m org/fable", "--model=Fable", "fable"}) {
    const std::string name = std::string(model).substr(std::string(model).find_last_of(" =") + 1);
    const Outcome quiet = sluice("run " + std::string(model) + rest + " -q");
    EXPECT_EQ(quiet.out, by_path.out) << model << quiet.err;
    EXPECT_EQ(quiet.err, "") << model;
    const Outcome told = sluice("run " + std::string(model) + rest + " --json");
    EXPECT_EQ(told.code, 0) << told.err;
    EXPECT_EQ(told.err, "sluice: " + name + ": " + snapshot("org--fable") + "\n");
  }
  EXPECT_THAT(sluice("run -m " + kModel + rest + " -q").out, by_path.out);
}

TEST_F(Local, OtherCommandsTakeNamesToo) {
  put_fable();
  for (const std::string& words :
       {std::string("inspect fable --json -q"), std::string("plan -m fable --memory 64MiB --json -q"),
        std::string("tokenize fable -p Once --json -q"),
        std::string("detokenize -m fable --tokens 1,2 --json -q"),
        "forward fable --tokens 1,2 --json -q -o " + home_.file("logits.npy"),
        "pack fable --json -q -o " + home_.file("fable.sluice"),
        "eval fable --reference org/fable -f " + home_.write("text", "Once upon a time there was a king.") +
            " --json -q"}) {
    const Outcome outcome = sluice(words);
    EXPECT_EQ(outcome.code, 0) << words << "\n" << outcome.err;
    EXPECT_EQ(outcome.err, "") << words;
    EXPECT_NO_THROW(Json::parse(outcome.out)) << words;
  }
}

TEST_F(Local, WhatIsNoNameSaysWhereWasLookedBeforeAnythingElseFails) {
  put_fable();
  for (const char* words :
       {"run nope -p a", "plan -m nope", "inspect nope", "tokenize nope -p a", "pack nope -o x.sluice",
        "quantise nope -o x", "calibrate nope -f x",
        "eval fable -q --reference nope -f " SLUICE_SOURCE_DIR "/models/fable-moe-18m/eval.txt",
        "profile nope -o x"}) {
    const Outcome outcome = sluice(words);
    EXPECT_EQ(outcome.code, 1) << words;
    EXPECT_THAT(outcome.err, HasSubstr("nope: no such file or directory, and no model of this name on this "
                                       "machine; expected a path, or a name that `sluice list` shows, found "
                                       "nothing here, and none in " +
                                       home_.path() + "/.cache/huggingface/hub"))
        << words;
  }
  const Outcome path = sluice("run ./nope -p a");
  EXPECT_THAT(path.err, HasSubstr("./nope: no such directory"));
  put_gguf("pub/repo/a.gguf");
  put_gguf("pub/repo/b.gguf");
  const Outcome several = sluice("run repo -p a");
  EXPECT_EQ(several.code, 2);
  EXPECT_THAT(several.err, HasSubstr("found pub/repo/a.gguf, pub/repo/b.gguf;"));
}

TEST_F(Local, TheModelIsGivenByItsPlaceOrByItsFlag) {
  const auto expect = [&](const std::string& words, const std::string& message) {
    const Outcome outcome = sluice(words);
    EXPECT_EQ(outcome.code, 2) << words;
    EXPECT_EQ(outcome.err, "sluice: " + message + "\n") << words;
  };
  const std::string excess = "; leave it out, or put a text that has blanks between quotes";
  expect("run a -m b -p c",
         "MODEL: given more than once; expected one value, found a and b; leave out all but one");
  expect("run -m a -m b -p c",
         "MODEL: given more than once; expected one value, found a and b; leave out all but one");
  expect("run -m a b -p c", "run: a word too many; expected flags alone, found \"b\"" + excess);
  expect("run --model=a b -p c", "run: a word too many; expected flags alone, found \"b\"" + excess);
  expect("run -p c",
         "MODEL: the argument is missing; expected `sluice run MODEL`, found nothing; `sluice run --help` "
         "explains "
         "the usage");
  expect(
      "run -p c -m",
      "-m: the flag has no value; expected -m MODEL, found the end of the command line; `sluice run --help` "
      "explains the usage");
  expect("run -m -p c",
         "-m: the flag has no value; expected -m MODEL, found the flag -p; give a value, or --model=-p if "
         "that is "
         "meant");
  EXPECT_THAT(sluice("run --help").out, HasSubstr("Usage: sluice run MODEL [FLAGS]"));
  EXPECT_THAT(sluice("run --help").out, HasSubstr("\n  MODEL or -m,--model MODEL"));
}

}  // namespace
