// The folders of src/ are layers: a file may include its own folder and those that CMakeLists.txt names as
// its DEPS. The linker catches most wrong includes; this test also catches those of header-only code. The
// folders of a layer are its rooms, and this test alone says which room may include which.
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

// The text of every quoted include.
std::vector<std::string> quoted_includes(const std::string& text) {
  static const std::regex pattern("^[ \t]*#[ \t]*include[ \t]*\"([^\"]*)\"");
  std::vector<std::string> includes;
  std::istringstream lines(text);
  std::smatch match;
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_search(line, match, pattern)) includes.push_back(match[1]);
  }
  return includes;
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
  const std::set<std::string> kinds = {".h", ".cc", ".cu", ".cuh"};
  std::size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "src")) {
    if (!entry.is_regular_file() || !kinds.contains(entry.path().extension())) continue;
    const fs::path relative = fs::relative(entry.path(), kRoot / "src");
    const std::string own = relative.begin()->string();
    if (!by_name_.contains(own)) continue;  // reported above
    ++files;
    for (const std::string& include : quoted_includes(read_file(entry.path()))) {
      EXPECT_EQ(include_fault(include, own, by_name_), "")
          << "src/" << relative.string() << " includes " << include;
    }
  }
  EXPECT_GT(files, 50u);
}

// A room of a layer: its folder, and the rooms that it may include. "." is what stands in the layer's folder
// itself, without the folders below it.
struct Room {
  std::string name;
  std::set<std::string> below;
};

// The rooms of each layer that has some, lowest first, and of the command line. A folder within a room
// belongs to that room.
const std::map<std::string, std::vector<Room>> kRooms = {
    {"apps/sluice",
     {{"streams", {}},
      {"flags", {"streams"}},
      {"setup", {"streams", "flags"}},
      {"report", {"streams", "flags"}},
      {".", {"streams", "flags"}},
      {"commands", {"streams", "flags", "setup", "report", "."}}}},
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
    {"eval", {{".", {}}, {"tasks", {"."}}}},
    {"serve",
     {{".", {}},
      {"json", {}},
      {"http", {}},
      {"page", {}},
      {"wire", {".", "json", "http"}},
      {"engine", {"."}},
      {"server", {".", "json", "http", "page", "wire"}}}},
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
};

// The room of a file, from its path below the layer's folder: "pack/journal.h", "checkpoint.h".
std::string room_of(const std::string& path) {
  const std::size_t slash = path.find('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

bool is_test(const fs::path& path) {
  const std::string stem = path.stem();
  return stem.ends_with("_test") || stem.ends_with("_fuzz") || stem.ends_with("_bench");
}

TEST(Rooms, IncludesFollowTheArrows) {
  std::size_t includes = 0;
  for (const auto& [layer, rooms] : kRooms) {
    // Includes are written from src/, those of the command line from its own folder.
    const bool app = layer.starts_with("apps/");
    const fs::path folder = app ? kRoot / layer : kRoot / "src" / layer;
    const std::string prefix = app ? "" : layer + '/';
    std::map<std::string, Room> by_name;
    for (const Room& room : rooms) {
      for (const std::string& below : room.below)
        EXPECT_TRUE(by_name.contains(below))
            << layer << ": " << room.name << " includes " << below << ", which is not below it";
      by_name[room.name] = room;
    }
    std::set<std::string> used;  // "room below"
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      if (!entry.is_regular_file() || is_test(entry.path())) continue;
      const std::string relative = fs::relative(entry.path(), folder), own = room_of(relative);
      ASSERT_TRUE(by_name.contains(own))
          << layer << '/' << relative << " stands in a room that is not listed";
      for (const std::string& include : quoted_includes(read_file(entry.path()))) {
        if (!include.starts_with(prefix) || !fs::exists(folder / include.substr(prefix.size()))) continue;
        const std::string other = room_of(include.substr(prefix.size()));
        if (other == own) continue;
        ++includes;
        used.insert(own + ' ' + other);
        EXPECT_TRUE(by_name[own].below.contains(other))
            << layer << '/' << relative << " includes " << include;
      }
    }
    for (const Room& room : rooms)
      for (const std::string& below : room.below)
        EXPECT_TRUE(used.contains(room.name + ' ' + below))
            << layer << ": " << room.name << " includes nothing of " << below;
  }
  EXPECT_GT(includes, 100u);
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

TEST(Rooms, EveryLayerWithFoldersIsListed) {
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / "src")) {
    if (!entry.is_directory()) continue;
    const fs::path relative = fs::relative(entry.path(), kRoot / "src");
    const std::string layer = relative.begin()->string();
    if (!relative.has_parent_path()) continue;
    EXPECT_TRUE(kRooms.contains(layer)) << relative << " is a room of a layer that is not listed";
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
      "src/tokenizer/json/tokenizer_document.cc", "src/store/json_reader_test.cc"}},
    {"CLI/",
     {"apps/sluice/flags/command_line.cc",
      "apps/sluice/commands/version.cc"}},  // the second for its version alone
};

TEST(HeavyHeaders, AreIncludedByTheseFilesAlone) {
  const std::set<std::string> kinds = {".h", ".cc", ".cu", ".cuh"};
  const std::regex include("^[ \t]*#[ \t]*include[ \t]*[<\"]([^/>\"]*/)");
  std::map<std::string, std::set<std::string>> found;
  for (const char* folder : {"src", "apps", "bench", "tests"}) {
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
      if (!entry.is_regular_file() || !kinds.contains(entry.path().extension())) continue;
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
  EXPECT_EQ(quoted_includes("#include <a.h>\n  # include \"low/b.h\"  // why\n//#include \"no\"\n"),
            std::vector<std::string>{"low/b.h"});
}

}  // namespace
