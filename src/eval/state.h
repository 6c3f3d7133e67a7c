// What an evaluation has finished, in a file, so that one that was interrupted goes on. The file is replaced
// as a whole:
//   sluice eval state 1 XXH3-of-what-follows (16 hexadecimal digits)
//   {"identity": {…}, "finished": […]}
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/stopwatch.h"

namespace sluice::eval {

// Thread-compatible.
class State {
 public:
  // Reads `path` if it is there; an empty path keeps nothing. `identity` is a flat object of all that the
  // results depend on. Error(kCorrupt) if the file is damaged, (kInvalid) if it is no state or of another
  // evaluation, naming the first difference, (kUnsupported) if it is of another version.
  State(std::string path, Json identity);

  const std::string& path() const { return path_; }
  // Results that were in the file, in their order; add() does not change them.
  const Json::array_t& found() const { return found_; }
  // One more result. The file is written at once for the first, and then whenever some time has passed.
  // Error(kIo).
  void add(Json result);
  void save();  // writes what has not been written

 private:
  std::string path_;
  Json identity_;
  Json::array_t found_, added_;
  bool dirty_ = false, written_ = false;
  Stopwatch since_save_;
  double save_s_ = 0;  // that the last one took
};

// Results 0 … count − 1: those that `state` has, read by from_json(json, "FILE, result N"), and the others as
// work(i) makes them. Whatever ends the work, what was finished is in the file before the error goes on.
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
