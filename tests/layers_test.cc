// The folders of src/ are layers: a file may include its own folder and those that CMakeLists.txt names as
// its DEPS. The linker catches most wrong includes; this test also catches those of header-only code. The
// folders of a layer are its rooms, those of a room are rooms as well, and this test alone says which room
// may include which.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "source_text.h"

namespace {

namespace fs = std::filesystem;

const fs::path kRoot = SLUICE_SOURCE_DIR;

std::string read_file(const fs::path& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

struct Layer {
  std::string name;
  std::set<std::string> deps;
};

// The sluice_folder(NAME DEPS a b LIBS …) calls, in order.
std::vector<Layer> parse_layers(const std::string& cmake) {
  std::vector<Layer> layers;
  const std::regex call(R"((?:^|\n)sluice_folder\(([^)]*)\))");
  for (std::sregex_iterator it(cmake.begin(), cmake.end(), call), end; it != end; ++it) {
    std::istringstream words((*it)[1].str());
    Layer layer;
    words >> layer.name;
    bool in_deps = false;
    for (std::string word; words >> word;) {
      if (word == "DEPS" || word == "LIBS") {
        in_deps = word == "DEPS";
      } else if (in_deps) {
        layer.deps.insert(word);
      }
    }
    layers.push_back(layer);
  }
  return layers;
}

// The fault of one include of a file in folder `own`; empty if there is none.
std::string include_fault(const std::string& include, const std::string& own,
                          const std::map<std::string, Layer>& layers) {
  const std::string folder = include.substr(0, include.find('/'));
  if (folder == include || folder == "." || folder == "..") return "is not written from src/";
  if (!layers.contains(folder)) return "names no folder of src/";
  if (folder != own && !layers.at(own).deps.contains(folder)) return "is not among the DEPS of " + own;
  return {};
}

struct Include {
  std::string path;
  bool quoted = false;  // between quotes, as ours should be; or between angle brackets
};

std::vector<Include> includes_of(const std::string& text) {
  static const std::regex pattern("^[ \t]*#[ \t]*include[ \t]*([<\"])([^\">]*)[\">]");
  std::vector<Include> includes;
  std::istringstream lines(text);
  std::smatch match;
  for (std::string line; std::getline(lines, line);) {
    if (line.find("include") == std::string::npos) continue;  // a regex for each line would take seconds
    if (std::regex_search(line, match, pattern)) includes.push_back({match[2], match[1] == "\""});
  }
  return includes;
}

// Between angle brackets, too, a header is ours if its first folder is a layer.
bool is_ours(const Include& include, const std::map<std::string, Layer>& layers) {
  return include.quoted || include.path.starts_with('.') ||
         layers.contains(include.path.substr(0, include.path.find('/')));
}

class Layers : public testing::Test {
 protected:
  Layers() {
    for (const Layer& layer : in_order_) by_name_[layer.name] = layer;
  }
  const std::vector<Layer> in_order_ = parse_layers(read_file(kRoot / "CMakeLists.txt"));
  std::map<std::string, Layer> by_name_;
};

TEST_F(Layers, DependOnlyOnLayersBelow) {
  ASSERT_GE(in_order_.size(), 10u);
  std::set<std::string> below;
  for (const Layer& layer : in_order_) {
    for (const std::string& dep : layer.deps) {
      EXPECT_TRUE(below.contains(dep)) << layer.name << " depends on " << dep << ", which is not below it";
    }
    below.insert(layer.name);
  }
}

TEST_F(Layers, EveryFolderIsALayer) {
  for (const auto& entry : fs::directory_iterator(kRoot / "src")) {
    if (!entry.is_directory()) continue;
    EXPECT_TRUE(by_name_.contains(entry.path().filename())) << entry.path() << " has no sluice_folder() line";
  }
}

TEST_F(Layers, IncludesPointDown) {
  std::size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "src")) {
    if (!entry.is_regular_file() || !sluice::testing::is_source(entry.path())) continue;
    const fs::path relative = fs::relative(entry.path(), kRoot / "src");
    const std::string own = relative.begin()->string();
    if (!by_name_.contains(own)) continue;  // reported above
    ++files;
    for (const Include& include : includes_of(read_file(entry.path()))) {
      if (!is_ours(include, by_name_)) continue;
      EXPECT_EQ(include_fault(include.path, own, by_name_), "")
          << "src/" << relative.string() << " includes " << include.path;
    }
  }
  EXPECT_GT(files, 50u);
}

// A room of a folder: a folder in it, and the rooms beside it that it may include. "." is what stands in the
// folder itself, without the folders below it.
struct Room {
  std::string name;
  std::set<std::string> below;
  // Rooms listed before, with which this is one room in two folders: each includes the other.
  std::set<std::string> one_with = {};
};

// The rooms of each folder that has some, lowest first: of each layer, of each room, and of the command line.
// What rooms of different rooms may include of each other is said where these two stand beside each other.
const std::map<std::string, std::vector<Room>> kRooms = {
    {"apps/sluice",
     {{"streams", {}},
      {"flags", {"streams"}},
      {"setup", {"streams", "flags"}},
      {"report", {"streams", "flags"}},
      {".", {"streams", "flags"}},
      {"commands", {"streams", "flags", "setup", "report", "."}}}},
    {"apps/sluice/commands",
     {{"chat", {}}, {".", {"chat"}}, {"hybrid", {"."}}, {"simulate", {".", "hybrid"}}, {"serve", {"chat"}}}},
    {"base", {{".", {}}, {"files", {"."}}, {"machine", {".", "files"}}, {"json", {".", "files"}}}},
    {"codec",
     {{"native", {}},
      {"exponents", {"native"}},
      {"slices", {}},
      {".", {"native", "slices"}},
      {"blocks", {"."}}}},
    {"device", {{".", {}}, {"emulated", {"."}}, {"cuda", {"."}}, {"choice", {"cuda", "emulated", "."}}}},
    {"engine",
     {{"grammar", {}},
      {"session", {}},
      {"watch", {"session"}},
      {"plan", {}},
      {"forward", {"session", "watch", "plan"}},
      {"draft", {"session", "watch", "plan"}},
      {".", {"session", "watch", "plan", "forward", "draft"}},
      {"batch", {"grammar", "session", "watch", "forward", "draft", "."}},
      {"generate", {"session", ".", "batch"}}}},
    {"engine/forward",
     {{"dense", {}},
      {"common", {}},
      {"unit", {"common"}},
      {".", {"dense", "common", "unit"}},
      {"models", {"."}}}},
    {"eval", {{".", {}}, {"tasks", {"."}}}},
    {"serve",
     {{".", {}},
      {"json", {}},
      {"http", {}},
      {"page", {}},
      {"wire", {".", "json", "http"}},
      {"engine", {"."}},
      {"server", {".", "json", "http", "page", "wire"}}}},
    {"experts/cache", {{"workload", {}}, {".", {"workload"}}, {"slices", {"."}}}},
    {"serve/wire", {{".", {}}, {"openai", {"."}}, {"anthropic", {".", "openai"}}}},
    {"experts",
     {{"core", {}},
      {"cache", {"core"}},
      {"routing", {"core", "cache"}},
      {"schedule", {"core"}},
      {"plan", {"core", "schedule"}},
      {"prefetch", {"core", "cache", "routing"}},
      {"placement", {"core"}},
      {".", {"core", "cache", "routing", "schedule", "prefetch", "placement"}}}},
    {"fetch", {{".", {}}, {"dense", {"."}}, {"memory", {"."}}, {"device", {".", "memory"}}}},
    {"kernels",
     {{".", {}},
      {"lanes", {}},
      {"elementwise", {".", "lanes"}},
      {"attention", {".", "lanes", "elementwise"}},
      {"products", {".", "lanes", "elementwise"}},
      {"ops", {".", "elementwise", "attention", "products"}},
      {"gpu", {".", "lanes", "attention", "elementwise", "products", "ops"}},
      {"check", {"elementwise", "attention", "products", "ops"}}}},
    {"kernels/gpu",
     {{"dense", {}}, {"products", {}}, {"cuda", {"products"}}, {".", {}, {"dense", "products", "cuda"}}}},
    {"kernels/products",
     {{"blocks", {}},
      {"words", {}},
      {"codes", {"blocks", "words"}},
      {"packed", {}, {"words"}},
      {".", {}, {"blocks", "words", "codes", "packed"}}}},
    {"lab", {{".", {}}, {"replay", {}}, {"machine", {"replay"}}, {"ask", {"replay"}}}},
    {"reproduce",
     {{".", {}}, {"zipmoe", {"."}}, {"slicemoe", {".", "zipmoe"}}, {"dali", {"."}}, {"smoe", {"."}}}},
    {"model", {{".", {}}, {"synth", {"."}}}},
    {"store",
     {{".", {}},
      {"source", {"."}},
      {"local", {"source"}},
      {"sidecar", {".", "source"}},
      {"pack", {".", "source"}},
      {"check", {".", "source", "sidecar", "pack"}}}},
    {"tokenizer",
     {{"text", {}},
      {"vocabulary", {"text"}},
      {"template", {"text"}},
      {"stages", {"text", "vocabulary"}},
      {"bpe", {"text", "vocabulary", "stages"}},
      {"sentencepiece", {"text", "vocabulary"}},
      {"json", {"text", "vocabulary", "stages"}},
      {"gguf", {"text", "vocabulary", "stages", "bpe", "sentencepiece"}},
      {".", {"text", "vocabulary", "stages", "bpe", "sentencepiece", "json", "gguf"}},
      {"chat", {".", "text", "template", "gguf"}},
      {"export", {".", "text", "vocabulary", "stages", "bpe", "sentencepiece", "json", "gguf", "chat"}}}},
    {"tokenizer/chat", {{"calls", {}}, {".", {"calls"}}}},
    {"tokenizer/template", {{".", {}}, {"rows", {"."}}}},
};

// Where a folder of kRooms stands, and how its includes begin: they are written from src/, those of the
// command line from its own folder.
const fs::path& source_root(const std::string& folder) {
  static const fs::path library = kRoot / "src", program = kRoot / "apps/sluice";
  return folder.starts_with("apps/") ? program : library;
}

std::string prefix_of(const std::string& folder) {
  const std::string path = fs::relative(folder.starts_with("apps/") ? kRoot / folder : kRoot / "src" / folder,
                                        source_root(folder));
  return path == "." ? "" : path + '/';
}

// The room of a file, from its path below the folder: "pack/journal.h", "checkpoint.h".
std::string room_of(const std::string& path) {
  const std::size_t slash = path.find('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

// Whether a file of the room `from` may include one of the room `to` of the same folder.
bool may_include(const std::vector<Room>& rooms, const std::string& from, const std::string& to) {
  for (const Room& room : rooms) {
    if (room.name == from && (room.below.contains(to) || room.one_with.contains(to))) return true;
    if (room.name == to && room.one_with.contains(from)) return true;
  }
  return from == to;
}

// Whether a file of `folder`, a key of kRooms, may include a path. Both are written as includes are.
bool may_include_path(const std::string& folder, const std::string& file, const std::string& include) {
  const std::string prefix = prefix_of(folder);
  if (!include.starts_with(prefix)) return true;
  return may_include(kRooms.at(folder), room_of(file.substr(prefix.size())),
                     room_of(include.substr(prefix.size())));
}

bool is_test(const fs::path& path) {
  const std::string stem = path.stem();
  return stem.ends_with("_test") || stem.ends_with("_fuzz") || stem.ends_with("_bench");
}

TEST(Rooms, IncludesFollowTheArrows) {
  std::size_t includes = 0;
  for (const auto& [folder, rooms] : kRooms) {
    const std::string prefix = prefix_of(folder);
    const fs::path& root = source_root(folder);
    std::set<std::string> listed;
    for (const Room& room : rooms) {
      for (const auto* others : {&room.below, &room.one_with})
        for (const std::string& other : *others)
          EXPECT_TRUE(listed.contains(other))
              << folder << ": " << room.name << " includes " << other << ", which is not below it";
      listed.insert(room.name);
    }
    std::set<std::string> used;  // "from to"
    for (const auto& entry : fs::recursive_directory_iterator(root / prefix)) {
      if (!entry.is_regular_file() || is_test(entry.path())) continue;
      const std::string file = fs::relative(entry.path(), root), own = room_of(file.substr(prefix.size()));
      ASSERT_TRUE(listed.contains(own)) << folder << ": " << file << " stands in a room that is not listed";
      for (const Include& include : includes_of(read_file(entry.path()))) {
        if (!include.path.starts_with(prefix) || !fs::exists(root / include.path)) continue;
        const std::string other = room_of(include.path.substr(prefix.size()));
        if (other == own) continue;
        ++includes;
        used.insert(own + ' ' + other);
        EXPECT_TRUE(may_include_path(folder, file, include.path))
            << folder << ": " << file << " includes " << include.path;
      }
    }
    for (const Room& room : rooms) {
      for (const std::string& below : room.below)
        EXPECT_TRUE(used.contains(room.name + ' ' + below))
            << folder << ": " << room.name << " includes nothing of " << below;
      for (const std::string& other : room.one_with)
        EXPECT_TRUE(used.contains(room.name + ' ' + other) && used.contains(other + ' ' + room.name))
            << folder << ": " << room.name << " and " << other << " are no longer one room";
    }
  }
  EXPECT_GT(includes, 1000u);
}

// Tests the table: it must forbid what its arrows are there for.
TEST(Rooms, WrongIncludesAreFound) {
  const char* const models = "engine/forward/models/toy.cc";
  EXPECT_TRUE(may_include_path("engine/forward", models, "engine/forward/layer_run.h"));
  EXPECT_TRUE(may_include_path("engine/forward", models, "engine/forward/models/other.h"));
  EXPECT_FALSE(may_include_path("engine/forward", models, "engine/forward/unit/device_unit.h"));
  EXPECT_FALSE(may_include_path("engine/forward", models, "engine/forward/common/workspace.h"));
  EXPECT_FALSE(
      may_include_path("engine/forward", "engine/forward/unit/toy.cc", "engine/forward/moe_block.h"));
  EXPECT_FALSE(may_include_path("kernels/products", "kernels/products/blocks/toy.cc",
                                "kernels/products/words/matmul.h"));
  EXPECT_FALSE(
      may_include_path("kernels/gpu", "kernels/gpu/dense/toy-inl.h", "kernels/gpu/products/sums-inl.h"));
  EXPECT_FALSE(may_include_path("serve/wire", "serve/wire/toy.cc", "serve/wire/openai/chat_body.h"));
  EXPECT_FALSE(may_include_path("tokenizer/template", "tokenizer/template/toy.cc",
                                "tokenizer/template/rows/tables.h"));
  EXPECT_FALSE(may_include_path("apps/sluice/commands", "commands/toy.cc", "commands/serve/toy.h"));
  EXPECT_FALSE(may_include_path("apps/sluice", "setup/toy.cc", "commands/toy.h"));
  const std::vector<Room> knot = {{"low", {}}, {"side", {}}, {"high", {"side"}, {"low"}}};
  EXPECT_TRUE(may_include(knot, "high", "low") && may_include(knot, "low", "high"));
  EXPECT_TRUE(may_include(knot, "high", "side"));
  EXPECT_FALSE(may_include(knot, "side", "high") || may_include(knot, "low", "side"));
}

// More than these beside each other are no longer seen at a glance.
TEST(Rooms, HaveFewFiles) {
  constexpr int kMost = 40;
  std::map<fs::path, int> files;
  for (const char* root : {"src", "apps"})
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / root))
      if (entry.is_regular_file() && !is_test(entry.path())) ++files[entry.path().parent_path()];
  EXPECT_GT(files.size(), 30u);
  for (const auto& [folder, count] : files) EXPECT_LE(count, kMost) << folder;
}

TEST(Rooms, EveryFolderWithFoldersIsListed) {
  for (const char* root : {"src", "apps/sluice"})
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / root)) {
      const fs::path parent = entry.path().parent_path();
      if (!entry.is_directory() || parent == kRoot / "src") continue;
      const std::string folder =
          fs::relative(parent, std::string(root) == "src" ? kRoot / "src" : kRoot).string();
      EXPECT_TRUE(kRooms.contains(folder)) << entry.path() << " is a room of a folder that is not listed";
    }
}

// Libraries of headers alone that cost seconds in each file that includes them. Whoever needs more of one
// widens our header before it; a file that no longer includes the library leaves the list.
const std::map<std::string, std::set<std::string>> kIncludersOf = {
    {"boost/",
     {"src/serve/http/connection.h", "src/serve/http/connection.cc", "src/serve/http/connection_writer.cc",
      "src/serve/http/http_server.cc", "src/serve/http/request_parser.cc"}},
    {"nlohmann/",
     {"src/base/json/json_test.cc", "src/base/json/json_text.cc", "src/base/json/json_value_test.cc",
      "src/tokenizer/json/tokenizer_document.cc", "src/engine/grammar/schema_grammar_fuzz.cc",
      "src/store/json_reader_test.cc"}},
    {"CLI/",
     {"apps/sluice/flags/command_line.cc",
      "apps/sluice/commands/version.cc"}},  // the second for its version alone
};

TEST(HeavyHeaders, AreIncludedByTheseFilesAlone) {
  const std::regex include("^[ \t]*#[ \t]*include[ \t]*[<\"]([^/>\"]*/)");
  std::map<std::string, std::set<std::string>> found;
  for (const char* folder : {"src", "apps", "bench", "tests"}) {
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
      if (!entry.is_regular_file() || !sluice::testing::is_source(entry.path())) continue;
      std::istringstream lines(read_file(entry.path()));
      std::smatch match;
      for (std::string line; std::getline(lines, line);) {
        if (line.find("include") == std::string::npos) continue;
        if (std::regex_search(line, match, include) && kIncludersOf.contains(match[1]))
          found[match[1]].insert(fs::relative(entry.path(), kRoot).string());
      }
    }
  }
  EXPECT_EQ(found, kIncludersOf);
}

// Tests the rule itself: it must find what it is there to find.
TEST(LayersRule, FindsUpwardSidewaysAndRelativeIncludes) {
  const auto list = parse_layers(
      "project(x)\nsluice_folder(low LIBS z::z)\nsluice_folder(side  DEPS low)\n"
      "sluice_folder(high DEPS low\n              LIBS y)\n");
  ASSERT_EQ(list.size(), 3u);
  std::map<std::string, Layer> layers;
  for (const Layer& layer : list) layers[layer.name] = layer;
  EXPECT_EQ(include_fault("low/a.h", "high", layers), "");
  EXPECT_EQ(include_fault("high/a.h", "high", layers), "");
  EXPECT_NE(include_fault("high/a.h", "low", layers), "");
  EXPECT_NE(include_fault("side/a.h", "high", layers), "");
  EXPECT_NE(include_fault("../low/a.h", "high", layers), "");
  EXPECT_NE(include_fault("a.h", "high", layers), "");
  const std::vector<Include> found = includes_of(
      "#include <a.h>\n  # include \"low/b.h\"  // why\n//#include \"no\"\n#include <high/c.h>\n");
  ASSERT_EQ(found.size(), 3u);
  EXPECT_FALSE(is_ours(found[0], layers));
  EXPECT_TRUE(found[1].path == "low/b.h" && is_ours(found[1], layers));
  EXPECT_TRUE(found[2].path == "high/c.h" && is_ours(found[2], layers));
  EXPECT_NE(include_fault(found[2].path, "low", layers), "");
  EXPECT_TRUE(is_ours({"a.h", true}, layers) && is_ours({"../a.h", false}, layers));
}

}  // namespace
