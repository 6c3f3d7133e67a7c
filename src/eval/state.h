// The finished part of an evaluation in a file, so that an interrupted evaluation can resume. The file is
// always replaced as a whole:
//   sluice eval state 1 XXH3-of-what-follows (16 hexadecimal digits)
//   {"identity": {…}, "finished": […]}
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json/json.h"
#include "base/stopwatch.h"

namespace sluice::eval {

// Thread-compatible.
class State {
 public:
  // Reads `path` if it exists; an empty path keeps nothing. `identity` is a flat object of everything that
  // the results depend on. Error(kCorrupt) if the file is damaged, (kInvalid) if it is not a state or belongs
  // to another evaluation, naming the first difference, (kUnsupported) for another version.
  State(std::string path, Json identity);

  const std::string& path() const { return path_; }
  // Results that were in the file, in their order; add() does not change them.
  const Json::array_t& found() const { return found_; }
  // Adds one result. Writes the file at once for the first result, and later whenever some time has passed.
  // Error(kIo).
  void add(Json result);
  void save();  // writes results that are not yet in the file

 private:
  std::string path_;
  Json identity_;
  Json::array_t found_, added_;
  bool dirty_ = false, written_ = false;
  Stopwatch since_save_;
  double save_s_ = 0;  // duration of the last save
};

// Results 0 … count − 1: `state` supplies those it has, through from_json(json, "FILE, result N"), and
// work(i) makes the others. Whatever ends the work, finished results are in the file before the error is
// rethrown.
template <class Result, class FromJson, class Work>
std::vector<Result> finish(State& state, std::size_t count, const FromJson& from_json, const Work& work) {
  std::vector<Result> results;
  for (const Json& json : state.found()) {
    if (results.size() == count) break;
    results.push_back(from_json(json, state.path() + ", result " + std::to_string(results.size() + 1)));
  }
  try {
    while (results.size() < count) {
      results.push_back(work(results.size()));
      state.add(to_json(results.back()));
    }
  } catch (...) {
    state.save();
    throw;
  }
  state.save();
  return results;
}

}  // namespace sluice::eval
