// LM Studio: HOME/models/PUBLISHER/REPOSITORY/ with the files of one repository.
#include "base/error.h"
#include "base/files/file.h"
#include "store/local/local_programs.h"

namespace sluice::store {
namespace {

constexpr Bytes kMostPath = 64 * kKiB;

// The path in the file that says where LM Studio is at home; empty if there is none that can be read.
std::string pointed_home(const LocalEnvironment& environment) {
  const std::string pointer = environment.home + "/.lmstudio-home-pointer";
  if (!is_there(pointer)) return "";
  try {
    std::string path = read_text_file(pointer, kMostPath);
    path.erase(path.find_last_not_of(" \t\r\n") + 1);
    return path;
  } catch (const Error&) {
    return "";
  }
}

}  // namespace

std::vector<std::string> lm_studio_places(const LocalEnvironment& environment) {
  std::string home = pointed_home(environment);
  if (home.empty()) home = environment.home + "/.cache/lm-studio";
  if (!is_there(home)) home = environment.home + "/.lmstudio";
  return {home + "/models"};
}

void look_in_lm_studio(LocalSearch& search, const std::string& place) {
  for (const std::string& publisher : search.folders(place))
    for (const std::string& repository : search.folders(place + "/" + publisher)) {
      const std::string name = publisher + "/" + repository;
      search.repository(place + "/" + name, name, name);
    }
}

}  // namespace sluice::store
