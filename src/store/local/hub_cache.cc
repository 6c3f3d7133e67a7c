// The cache of Hugging Face's hub, which llama.cpp has used, too, since 2026:
//   models--ORG--NAME/refs/main           the commit that is current
//   models--ORG--NAME/snapshots/COMMIT/   the files, mostly links into blobs/
// Older states of llama.cpp kept GGUF files side by side.
#include <algorithm>

#include "store/local/local_programs.h"

namespace sluice::store {
namespace {

constexpr std::string_view kModels = "models--", kSeparator = "--", kHub = "hub", kFiles = "files";

// "ORG/NAME"; of models without an organisation, the name alone.
std::string repository_name(std::string_view folder) {
  std::string name(folder.substr(kModels.size()));
  if (const std::size_t at = name.find(kSeparator); at != name.npos) name.replace(at, kSeparator.size(), "/");
  return name;
}

// The first line without blanks around it.
std::string first_word(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == text.npos) return "";
  return text.substr(begin, text.find_first_of(" \t\r\n", begin) - begin);
}

void look_in_repository(LocalSearch& search, const std::string& path, const std::string& name) {
  const std::string snapshots = path + "/snapshots";
  const std::vector<std::string> commits = search.folders(snapshots);
  const std::string main = first_word(search.text(path + "/refs/main"));
  if (std::ranges::find(commits, main) != commits.end())
    return search.repository(snapshots + "/" + main, name, name);
  // Nobody has said which of several is current.
  for (const std::string& commit : commits)
    search.repository(snapshots + "/" + commit, commits.size() == 1 ? name : name + "@" + commit, name);
}

}  // namespace

std::vector<std::string> hub_places(const LocalEnvironment& environment) {
  if (const std::string cache = environment.first_of({"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"});
      !cache.empty())
    return {cache};
  if (const std::string home = environment.first_of({"HF_HOME"}); !home.empty()) return {home + "/hub"};
  if (const std::string cache = environment.first_of({"XDG_CACHE_HOME"}); !cache.empty())
    return {cache + "/huggingface/hub"};
  return {environment.home + "/.cache/huggingface/hub"};
}

void look_in_hub(LocalSearch& search, const std::string& place) {
  if (!search.first_time(place, kHub)) return;
  for (const std::string& folder : search.folders(place))
    if (folder.starts_with(kModels) && folder.size() > kModels.size())
      look_in_repository(search, place + "/" + folder, repository_name(folder));
}

std::vector<std::string> llama_cpp_places(const LocalEnvironment& environment) {
  if (const std::string cache = environment.first_of({"LLAMA_CACHE"}); !cache.empty()) return {cache};
  if (const std::string cache = environment.first_of({"XDG_CACHE_HOME"}); !cache.empty())
    return {cache + "/llama.cpp"};
  return {environment.home + "/.cache/llama.cpp"};
}

void look_in_llama_cpp(LocalSearch& search, const std::string& place) {
  look_in_hub(search, place);
  if (search.first_time(place, kFiles)) search.gguf_files(place);
}

}  // namespace sluice::store
