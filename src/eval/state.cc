#include "eval/state.h"

#include <fmt/format.h>

#include <filesystem>
#include <span>

#include "base/error.h"
#include "base/files/file.h"
#include "base/hash.h"
#include "base/setting.h"

namespace sluice::eval {
namespace {

constexpr std::string_view kStart = "sluice eval state ";
constexpr std::string_view kVersion = "1";
constexpr Bytes kMostBytes = 512 * kMiB;
constexpr double kLeastSeconds = 2;  // between two saves: the work that a kill may lose

std::string checksum(std::string_view text) {
  return hex64(xxh3(std::as_bytes(std::span(text.data(), text.size()))));
}

// Returns the JSON of a state. Errors as State's constructor.
std::string_view body_of(std::string_view text, const std::string& path) {
  const std::size_t end = text.find('\n');
  const std::string_view head = text.substr(0, end);
  if (!head.starts_with(kStart) || end == std::string_view::npos)
    throw Error(ErrorKind::kInvalid, "not the state of an evaluation")
        .in(path)
        .expected(fmt::format("\"{}{} …\" as its first line", kStart, kVersion))
        .fix("choose another name for " + Setting::kState + ", or remove the file");
  const std::string_view rest = head.substr(kStart.size());
  const std::size_t space = rest.find(' ');
  if (rest.substr(0, space) != kVersion)
    throw Error(ErrorKind::kUnsupported, "the state of an evaluation has another version")
        .in(path)
        .expected(kVersion)
        .found(rest.substr(0, std::min<std::size_t>(space, 20)))
        .fix("use the version of Sluice that wrote it, or remove the file to begin anew");
  const std::string_view body = text.substr(end + 1);
  const std::string_view stated = space == std::string_view::npos ? "" : rest.substr(space + 1);
  if (stated != checksum(body))
    throw Error(ErrorKind::kCorrupt, "the state of the evaluation is damaged: its checksum is wrong")
        .in(path)
        .expected(stated.substr(0, 16))
        .found(checksum(body))
        .fix("remove the file to begin anew");
  return body;
}

std::string shown(const Json* value) { return value == nullptr ? "nothing" : value->dump(); }

}  // namespace

State::State(std::string path, Json identity) : path_(std::move(path)), identity_(std::move(identity)) {
  std::error_code ignored;
  if (path_.empty() || !std::filesystem::exists(path_, ignored)) return;
  const std::string text = read_text_file(path_, kMostBytes);
  const Json json = parse_json(body_of(text, path_), path_, {.max_bytes = kMostBytes});
  const JsonObject state(json, path_);
  const JsonObject there = state.object("identity");
  for (const Json& object : {identity_, there.value()}) {
    for (const auto& [key, ignored_value] : object.items()) {
      const Json* const here = identity_.contains(key) ? &identity_.at(key) : nullptr;
      const Json* const found = there.value().contains(key) ? &there.value().at(key) : nullptr;
      if (here != nullptr && found != nullptr && *here == *found) continue;
      throw Error(ErrorKind::kInvalid, "the state is of another evaluation")
          .in(path_)
          .expected(fmt::format("{} {}", key, shown(here)))
          .found(shown(found))
          .fix("evaluate as before, or give another " + Setting::kState);
    }
  }
  const Json* const finished = state.find("finished");
  if (finished == nullptr || !finished->is_array()) state.fail("finished", "a list");
  found_ = finished->get_ref<const Json::array_t&>();
  written_ = true;
}

void State::add(Json result) {
  if (path_.empty()) return;
  added_.push_back(std::move(result));
  dirty_ = true;
  // Saving takes a small part of the time, however large the file grows.
  if (!written_ || since_save_.seconds() > std::max(kLeastSeconds, 50 * save_s_)) save();
}

void State::save() {
  if (!dirty_) return;
  since_save_.lap();
  Json::array_t finished = found_;
  finished.insert(finished.end(), added_.begin(), added_.end());
  const std::string body = Json{{"identity", identity_}, {"finished", std::move(finished)}}.dump();
  write_file_atomically(path_, fmt::format("{}{} {}\n{}", kStart, kVersion, checksum(body), body));
  dirty_ = false;
  written_ = true;
  save_s_ = since_save_.lap();
}

}  // namespace sluice::eval
