// Caches as the four programs lay them out, built in a scratch directory.
#include "store/local/local_models.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/files/scratch_directory.h"
#include "store/local/local_names.h"

namespace sluice::store {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string kDigest(64, 'a');

// A user without rights, as long as it lives, so that modes of folders count for tests of root, too.
class PlainUser {
 public:
  PlainUser() : root_(::geteuid() == 0) { become(65534); }
  ~PlainUser() { become(0); }

 private:
  void become(uid_t user) const {
    const int failed = root_ ? ::seteuid(user) : 0;
    EXPECT_EQ(failed, 0);
  }
  const bool root_;
};

class LocalModelsOf : public ::testing::Test {
 protected:
  LocalModelsOf() {
    environment_.home = scratch_.file("home");
    environment_.ollama_service = scratch_.file("service");
  }
  void put(const std::string& name, const std::string& content = "GGUF") const {
    scratch_.write("home/" + name, content);
  }
  std::string home(const std::string& name) const { return environment_.home + "/" + name; }
  // A file of a snapshot, a link into the blobs beside it as the hub's client makes it.
  void put_in_snapshot(const std::string& repository, const std::string& commit, const std::string& file,
                       const std::string& content = "GGUF") const {
    const std::string folder = ".cache/huggingface/hub/" + repository,
                      blob = commit + "-" + std::to_string(std::hash<std::string>()(file));
    put(folder + "/blobs/" + blob, content);
    const fs::path link = home(folder + "/snapshots/" + commit + "/" + file);
    fs::create_directories(link.parent_path());
    fs::create_symlink(home(folder + "/blobs/" + blob), link);
  }
  void put_manifest(const std::string& name, const std::string& digest,
                    const std::string& kind = "model") const {
    put(".ollama/models/manifests/" + name,
        R"({"schemaVersion":2,"config":{"digest":"sha256:0"},"layers":[)"
        R"({"mediaType":"application/vnd.ollama.image.template","digest":"sha256:1"},)"
        R"({"mediaType":"application/vnd.ollama.image.)" +
            kind + R"(","digest":")" + digest + R"("}]})");
  }
  LocalModels find(const LocalLimits& limits = {}) const { return find_local_models(environment_, limits); }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const LocalModel& model : find().models) names.push_back(model.name);
    return names;
  }
  LocalModel only() const {
    const LocalModels here = find();
    EXPECT_EQ(here.models.size(), 1u);
    return here.models.empty() ? LocalModel() : here.models[0];
  }

  testing::ScratchDirectory scratch_;
  LocalEnvironment environment_;
};

using HuggingFace = LocalModelsOf;
using LlamaCpp = LocalModelsOf;
using LmStudio = LocalModelsOf;
using Ollama = LocalModelsOf;
using LocalNames = LocalModelsOf;

TEST_F(LocalModelsOf, NothingIsFoundWhereNothingIs) {
  const LocalModels here = find();
  EXPECT_THAT(here.models, IsEmpty());
  EXPECT_THAT(here.notes, IsEmpty());
  std::vector<std::string> places;
  for (const LocalPlace& place : here.places) {
    places.push_back(place.path);
    EXPECT_FALSE(place.there);
  }
  EXPECT_THAT(places,
              ElementsAre(home(".cache/huggingface/hub"), home(".cache/llama.cpp"), home(".lmstudio/models"),
                          home(".ollama/models"), scratch_.file("service/.ollama/models")));
}

// ---- Hugging Face

TEST_F(HuggingFace, TheSnapshotOfMainIsTheModel) {
  put_in_snapshot("models--org--some-moe", "c1", "model.safetensors", "old");
  put_in_snapshot("models--org--some-moe", "c2", "model.safetensors", "12345");
  put_in_snapshot("models--org--some-moe", "c2", "config.json", "{}");
  put(".cache/huggingface/hub/models--org--some-moe/refs/main", "c2\n");
  put(".cache/huggingface/hub/models--org--some-moe/blobs/x.incomplete", "123");
  const LocalModel model = only();
  EXPECT_EQ(model.name, "org/some-moe");
  EXPECT_EQ(model.program, "huggingface");
  EXPECT_EQ(model.form, LocalForm::kSafetensors);
  EXPECT_EQ(model.path, home(".cache/huggingface/hub/models--org--some-moe/snapshots/c2"));
  EXPECT_EQ(model.files, 1u);
  EXPECT_EQ(model.bytes, 5u);
  EXPECT_EQ(model.fault, "");
}

TEST_F(HuggingFace, WithoutMainTheOnlySnapshotCountsElseAll) {
  put_in_snapshot("models--gpt", "c1", "model.safetensors");
  EXPECT_THAT(names(), ElementsAre("gpt"));
  put_in_snapshot("models--gpt", "c2", "model.safetensors");
  EXPECT_THAT(names(), ElementsAre("gpt@c1", "gpt@c2"));
  put(".cache/huggingface/hub/models--gpt/refs/main", "gone");
  EXPECT_THAT(names(), ElementsAre("gpt@c1", "gpt@c2"));
  put(".cache/huggingface/hub/models--gpt/refs/main", "../../c1");
  EXPECT_THAT(names(), ElementsAre("gpt@c1", "gpt@c2"));
  put(".cache/huggingface/hub/models--gpt/refs/main", "c2");
  EXPECT_THAT(names(), ElementsAre("gpt"));
}

TEST_F(HuggingFace, WhatIsNoModelIsLeftOut) {
  put_in_snapshot("datasets--org--text", "c1", "model.safetensors");
  put_in_snapshot("models--org--tokenizer", "c1", "tokenizer.json");
  put(".cache/huggingface/hub/models--org--empty/refs/main", "c1");
  put(".cache/huggingface/hub/version.txt", "1");
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(HuggingFace, EachGgufModelOfARepositoryHasAName) {
  for (const char* file : {"Q4/big-00001-of-00002.gguf", "Q4/big-00002-of-00002.gguf", "small.gguf",
                           "mmproj-f16.gguf", "half.gguf.incomplete"})
    put_in_snapshot("models--org--a-GGUF", "c1", file, "GGUF");
  EXPECT_THAT(names(), ElementsAre("org/a-GGUF/Q4/big-00001-of-00002.gguf", "org/a-GGUF/small.gguf"));
  const LocalModel big = find().models[0];
  EXPECT_EQ(big.form, LocalForm::kGguf);
  EXPECT_EQ(big.files, 2u);
  EXPECT_EQ(big.bytes, 8u);
  EXPECT_EQ(big.path,
            home(".cache/huggingface/hub/models--org--a-GGUF/snapshots/c1/Q4/big-00001-of-00002.gguf"));
  EXPECT_EQ(big.fault, "");
}

TEST_F(HuggingFace, WhatAModelLacksIsSaid) {
  const auto fault = [&](const std::string& name) {
    for (const LocalModel& model : find().models)
      if (model.name == name) return model.fault;
    return "no " + name;
  };
  put_in_snapshot("models--o--shards", "c1", "model-1.safetensors");
  put_in_snapshot(
      "models--o--shards", "c1", "model.safetensors.index.json",
      R"({"weight_map":{"a":"model-1.safetensors","b":"model-2.safetensors","c":"model-3.safetensors"}})");
  EXPECT_EQ(fault("o/shards"), "model-2.safetensors is missing (2 files in all)");
  put_in_snapshot("models--o--link", "c1", "model.safetensors");
  fs::remove_all(home(".cache/huggingface/hub/models--o--link/blobs"));
  EXPECT_EQ(fault("o/link"), "model.safetensors is a link that leads nowhere");
  put_in_snapshot("models--o--parts", "c1", "a-00002-of-00003.gguf");
  EXPECT_EQ(fault("o/parts/a-00001-of-00003.gguf"), "2 of 3 parts are missing");
  put_in_snapshot("models--o--index", "c1", "model.safetensors");
  put_in_snapshot("models--o--index", "c1", "model.safetensors.index.json", "{");
  EXPECT_NE(fault("o/index"), "");
}

TEST_F(HuggingFace, TheFirstVariableThatIsSetSaysWhere) {
  const std::vector<std::pair<std::string, std::string>> variables = {{"XDG_CACHE_HOME", "/huggingface/hub"},
                                                                      {"HF_HOME", "/hub"},
                                                                      {"HUGGINGFACE_HUB_CACHE", ""},
                                                                      {"HF_HUB_CACHE", ""}};
  for (const auto& [name, behind] : variables) {
    environment_.variables[name] = "~/" + name;
    EXPECT_EQ(find().places[0].path, home(name) + behind);
    put(name + behind + "/models--org--" + name + "/snapshots/c/model.safetensors");
    EXPECT_THAT(names(), Contains("org/" + name));
  }
  environment_.variables["HF_HUB_CACHE"] = "";  // as if it were not set
  EXPECT_THAT(names(), Contains("org/HUGGINGFACE_HUB_CACHE"));
}

// ---- llama.cpp

TEST_F(LlamaCpp, FilesLieSideBySideOrAsInTheHub) {
  put(".cache/llama.cpp/org_repo_a-Q4_K_M.gguf", "12345");
  put(".cache/llama.cpp/org_repo_a-Q4_K_M.gguf.json", "{}");
  put(".cache/llama.cpp/b.gguf.downloadInProgress");
  put(".cache/llama.cpp/models--org--b-GGUF/snapshots/c/b.gguf");
  EXPECT_THAT(names(), ElementsAre("org/b-GGUF/b.gguf", "org_repo_a-Q4_K_M.gguf"));
  EXPECT_EQ(find().models[1].program, "llama.cpp");
  EXPECT_EQ(find().models[1].bytes, 5u);
  environment_.variables["LLAMA_CACHE"] = home("elsewhere");
  EXPECT_THAT(names(), IsEmpty());
}

TEST_F(LlamaCpp, ACacheThatItSharesWithTheHubIsLookedAtOnce) {
  put_in_snapshot("models--org--a", "c1", "model.safetensors");
  put(".cache/huggingface/hub/b.gguf");
  fs::create_symlink(home(".cache/huggingface/hub"), home("link"));
  environment_.variables["LLAMA_CACHE"] = home("link");
  EXPECT_THAT(names(), ElementsAre("b.gguf", "org/a"));
  EXPECT_THAT(find().notes, IsEmpty());
}

// ---- LM Studio

TEST_F(LmStudio, ItsHomeIsWhatItsPointerSays) {
  put(".lmstudio/models/pub/repo/a.gguf");
  put(".lmstudio/models/pub/repo/mmproj-a.gguf");
  EXPECT_THAT(names(), ElementsAre("pub/repo/a.gguf"));
  put(".cache/lm-studio/models/pub/repo/b.gguf");
  EXPECT_THAT(names(), ElementsAre("pub/repo/b.gguf"));
  put("far/models/pub/mlx/model.safetensors");
  put(".lmstudio-home-pointer", home("far") + "\n");
  EXPECT_THAT(names(), ElementsAre("pub/mlx"));
  EXPECT_EQ(only().program, "lm-studio");
}

// ---- Ollama

TEST_F(Ollama, AManifestNamesTheFileByItsDigest) {
  put_manifest("registry.ollama.ai/library/qwen3/30b", "sha256:" + kDigest);
  put_manifest("registry.ollama.ai/someone/qwen3/latest", "sha256:" + kDigest);
  put_manifest("hf.co/org/a-GGUF/Q4_K_M", "sha256:" + kDigest);
  put(".ollama/models/blobs/sha256-" + kDigest, "123456");
  EXPECT_THAT(names(), ElementsAre("hf.co/org/a-GGUF:Q4_K_M", "qwen3:30b", "someone/qwen3:latest"));
  const LocalModel model = find().models[1];
  EXPECT_EQ(model.path, home(".ollama/models/blobs/sha256-" + kDigest));
  EXPECT_EQ(model.bytes, 6u);
  EXPECT_EQ(model.fault, "");
}

TEST_F(Ollama, ManifestsOfStrangersDoNoHarm) {
  const std::string library = "registry.ollama.ai/library/";
  const auto expect = [&](const std::string& words) {
    const LocalModel model = only();
    EXPECT_THAT(model.fault, HasSubstr(words));
    EXPECT_EQ(model.path.find("passwd"), std::string::npos);
    fs::remove_all(home(".ollama"));
  };
  put(".ollama/models/manifests/" + library + "bad/json", "{\"layers\":[");
  expect("its manifest cannot be read");
  put(".ollama/models/manifests/" + library + "bad/list", "{\"layers\":{}}");
  expect("its manifest cannot be read");
  put(".ollama/models/manifests/" + library + "bad/layer", "{\"layers\":[7]}");
  expect("its manifest cannot be read");
  put(".ollama/models/manifests/" + library + "bad/none", "{\"layers\":[]}");
  expect("names no GGUF file");
  put_manifest(library + "bad/path", "sha256:../../../../../../etc/passwd");
  expect("other than a SHA-256 digest");
  put_manifest(library + "bad/path", "sha256:" + std::string(63, 'a') + "/");
  expect("other than a SHA-256 digest");
  put_manifest(library + "bad/blob", "sha256:" + kDigest);
  expect("is missing");
  put_manifest(library + "bad/adapter", "sha256:" + kDigest, "adapter");
  expect("adapter");
  put(".ollama/models/manifests/" + library + "bad/large", std::string(2 << 20, ' '));
  expect("its manifest cannot be read");
}

TEST_F(Ollama, TheServicesModelsAreFoundToo) {
  const std::string manifest =
      R"({"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:)" + kDigest + "\"}]}";
  scratch_.write("service/.ollama/models/manifests/registry.ollama.ai/library/a/latest", manifest);
  scratch_.write("service/.ollama/models/blobs/sha256-" + kDigest, "1");
  EXPECT_EQ(only().path, scratch_.file("service/.ollama/models/blobs/sha256-" + kDigest));
  // The user's own of the same name counts before it.
  put_manifest("registry.ollama.ai/library/a/latest", "sha256:" + kDigest);
  put(".ollama/models/blobs/sha256-" + kDigest, "1");
  EXPECT_EQ(only().path, home(".ollama/models/blobs/sha256-" + kDigest));
  EXPECT_THAT(find().notes, ElementsAre(HasSubstr("Ollama has another a:latest")));
  environment_.variables["OLLAMA_MODELS"] = home("other");
  EXPECT_EQ(only().path, scratch_.file("service/.ollama/models/blobs/sha256-" + kDigest));
}

// ---- What lies in the way

TEST_F(LocalModelsOf, WhatCannotBeReadIsNoted) {
  put_in_snapshot("models--org--a", "c1", "model.safetensors");
  put_in_snapshot("models--org--b", "c1", "model.safetensors");
  put(".ollama", "a file");
  const std::string locked = home(".cache/huggingface/hub/models--org--b/snapshots");
  fs::permissions(scratch_.path(), fs::perms::all);
  fs::permissions(locked, fs::perms::none);
  LocalModels here;
  {
    const PlainUser user;
    here = find();
  }
  fs::permissions(locked, fs::perms::owner_all);
  ASSERT_EQ(here.models.size(), 1u);
  EXPECT_EQ(here.models[0].name, "org/a");
  EXPECT_THAT(here.notes, ElementsAre(HasSubstr(locked + " cannot be read: Permission denied"),
                                      HasSubstr(".ollama/models/manifests cannot be read: Not a directory")));
}

TEST_F(LocalModelsOf, FoldersAreFollowedToABoundedDepth) {
  put(".lmstudio/models/pub/repo/1/2/3/found.gguf");
  put(".lmstudio/models/pub/repo/1/2/3/4/deep.gguf");
  fs::create_directory_symlink(home(".lmstudio/models/pub/repo"), home(".lmstudio/models/pub/repo/loop"));
  const std::vector<std::string> found = names();
  EXPECT_THAT(found, Contains("pub/repo/1/2/3/found.gguf"));
  for (const std::string& name : found) EXPECT_EQ(name.find("deep"), std::string::npos) << name;
  EXPECT_LT(found.size(), 10u);
}

TEST_F(LocalModelsOf, HugeFoldersAreCutAndThatIsNoted) {
  for (int i = 0; i < 40; ++i) put(".cache/llama.cpp/" + std::to_string(i) + ".gguf");
  EXPECT_EQ(find({.of_folder = 40, .in_all = 1000}).models.size(), 40u);
  const LocalModels few = find({.of_folder = 30, .in_all = 1000});
  EXPECT_EQ(few.models.size(), 30u);
  EXPECT_THAT(few.notes,
              Contains(HasSubstr("llama.cpp is not looked at to its end: 30 entries are the most")));
  EXPECT_LE(find({.of_folder = 30, .in_all = 10}).models.size(), 10u);
}

// ---- Names

TEST_F(LocalNames, AreReadFromTheStrictestFormToTheLoosest) {
  put_in_snapshot("models--Org--Some-MoE", "c1", "model.safetensors");
  put_in_snapshot("models--org--two-GGUF", "c1", "Two-Q4.gguf");
  put_in_snapshot("models--org--two-GGUF", "c1", "Two-Q8-00001-of-00001.gguf");
  put_manifest("registry.ollama.ai/library/qwen/30b", "sha256:" + kDigest);
  put_manifest("registry.ollama.ai/library/qwen/latest", "sha256:" + kDigest);
  put_manifest("registry.ollama.ai/library/one/1b", "sha256:" + kDigest);
  const LocalModels here = find();
  const auto named = [&](std::string_view name) {
    std::string all;
    for (const LocalModel* model : local_models_named(here, name))
      all += (all.empty() ? "" : " ") + model->name;
    return all;
  };
  const std::string q4 = "org/two-GGUF/Two-Q4.gguf", q8 = "org/two-GGUF/Two-Q8-00001-of-00001.gguf";
  for (const char* name : {"Org/Some-MoE", "org/some-moe", "some-moe", "huggingface:Org/Some-MoE"})
    EXPECT_EQ(named(name), "Org/Some-MoE") << name;
  for (const char* name : {"org/two-gguf", "two-gguf"}) EXPECT_EQ(named(name), q4 + " " + q8) << name;
  for (const char* name : {"two-q4", "Two-Q4.gguf", "ORG/two-GGUF/Two-Q4.gguf"})
    EXPECT_EQ(named(name), q4) << name;
  for (const char* name : {"two-q8", "two-q8-00001-of-00001.gguf"}) EXPECT_EQ(named(name), q8) << name;
  EXPECT_EQ(named("qwen:30b"), "qwen:30b");
  EXPECT_EQ(named("Qwen"), "qwen:latest");
  EXPECT_EQ(named("one"), "one:1b");
  for (const char* name : {"", "qwen:7b", "org", "some", "moe"}) EXPECT_EQ(named(name), "") << name;
}

TEST_F(LocalNames, ThatTwoProgramsHaveGetTheProgramBeforeThem) {
  put_in_snapshot("models--org--a", "c1", "a.gguf");
  put(".lmstudio/models/org/a/a.gguf");
  EXPECT_THAT(names(), ElementsAre("huggingface:org/a/a.gguf", "lm-studio:org/a/a.gguf"));
  const LocalModels here = find();
  EXPECT_EQ(local_models_named(here, "lm-studio:org/a/a.gguf").size(), 1u);
  EXPECT_EQ(local_models_named(here, "org/a").size(), 2u);
}

TEST_F(LocalNames, PathsAreNone) {
  for (const char* path : {"", "/models/a", "./a", "../a", "~/a", "."})
    EXPECT_FALSE(may_be_local_name(path)) << path;
  for (const char* name : {"a", "org/a", "qwen:30b", "a.gguf"}) EXPECT_TRUE(may_be_local_name(name)) << name;
}

TEST_F(LocalNames, AnErrorSaysWhatIsHere) {
  put_in_snapshot("models--org--some-moe", "c1", "model.safetensors");
  put_in_snapshot("models--org--two", "c1", "a.gguf");
  put_in_snapshot("models--org--two", "c1", "b.gguf");
  put_manifest("registry.ollama.ai/library/qwen/30b", "sha256:" + kDigest);
  const LocalModels here = find();
  EXPECT_EQ(
      local_name_error(here, "two").what(),
      std::string("two: several models on this machine have this name; expected the whole name of one, "
                  "as `sluice list` shows it, found org/two/a.gguf, org/two/b.gguf; give one of these"));
  const std::string none = local_name_error(here, "nothing-like-it").what();
  EXPECT_THAT(none, HasSubstr("nothing-like-it: no such file or directory, and no model of this name"));
  for (const LocalPlace& place : here.places) EXPECT_THAT(none, HasSubstr(place.path));
  EXPECT_THAT(none, HasSubstr("`sluice list` shows those that are here"));
  EXPECT_THAT(local_name_error(here, "some-mo").what(), HasSubstr("did you mean some-moe?"));
  EXPECT_THAT(local_name_error(here, "qwen:30b").what(),
              HasSubstr("qwen:30b: the model of this name is not whole"));
  EXPECT_THAT(local_name_error(here, "qwen:30b").what(),
              HasSubstr("is missing; download it again with Ollama"));
  EXPECT_EQ(local_name_error(here, "two").kind(), ErrorKind::kUsage);
  EXPECT_EQ(local_name_error(here, "nothing").kind(), ErrorKind::kNotFound);
}

TEST_F(LocalNames, OddNamesAreFoundAsTheyAreAndShownSafely) {
  const std::string odd = "a \x1b[31m\n\xff.gguf";
  put(".cache/llama.cpp/" + odd);
  put(".cache/llama.cpp/b.gguf");
  EXPECT_THAT(names(), Contains(odd));
  const LocalModels here = find();
  EXPECT_EQ(local_models_named(here, odd).size(), 1u);
  EXPECT_THAT(local_name_error(here, odd + "x").what(),
              HasSubstr("a \\x1b[31m\\x0a\\xff.ggufx: no such file"));
}

}  // namespace
}  // namespace sluice::store
