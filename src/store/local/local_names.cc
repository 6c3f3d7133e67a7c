#include "store/local/local_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/unknown_name.h"

namespace sluice::store {
namespace {

constexpr std::size_t kMostNames = 8;  // in an error
constexpr std::string_view kGguf = ".gguf", kFirstPart = "-00001-of-", kLatest = ":latest";

std::string lower(std::string_view text) {
  std::string small(text);
  std::ranges::transform(small, small.begin(), [](unsigned char c) { return std::tolower(c); });
  return small;
}

bool same(std::string_view a, std::string_view b) { return lower(a) == lower(b); }

std::string_view last_part(std::string_view name) { return name.substr(name.rfind('/') + 1); }

// A file's name without its ending and the number of its part.
std::string_view stem(std::string_view file) {
  if (!file.ends_with(kGguf)) return file;
  file.remove_suffix(kGguf.size());
  return file.substr(0, std::min(file.rfind(kFirstPart), file.size()));
}

using Reading = bool (*)(const LocalModel& model, std::string_view name);

// Which names mean a model; the first reading that finds one counts.
constexpr std::array<Reading, 5> kReadings = {
    [](const LocalModel& model, std::string_view name) {
      return model.name == name || fmt::format("{}:{}", model.program, model.own_name) == name;
    },
    [](const LocalModel& model, std::string_view name) { return same(model.name, name); },
    [](const LocalModel& model, std::string_view name) {
      return model.name.ends_with(kLatest) && same(model.name, std::string(name) + std::string(kLatest));
    },
    [](const LocalModel& model, std::string_view name) { return same(model.repository, name); },
    [](const LocalModel& model, std::string_view name) {
      const std::string_view last = last_part(model.own_name);
      return same(last, name) || same(stem(last), name) || same(last_part(model.repository), name);
    },
};

std::string some_of(const std::vector<const LocalModel*>& models) {
  std::string names;
  for (std::size_t i = 0; i < std::min(models.size(), kMostNames); ++i)
    names += (i == 0 ? "" : ", ") + models[i]->name;
  if (models.size() > kMostNames) names += fmt::format(" and {} more", models.size() - kMostNames);
  return names;
}

// The model's name that is meant by a slip of the fingers; empty: none is near.
std::string nearest_name(const LocalModels& here, const std::string& name) {
  std::vector<std::string> names;
  for (const LocalModel& model : here.models)
    names.insert(names.end(), {model.name, model.repository, std::string(last_part(model.own_name))});
  std::erase(names, "");
  return nearest(name, names);
}

}  // namespace

bool may_be_local_name(std::string_view text) {
  return !text.empty() && text[0] != '/' && text[0] != '.' && text[0] != '~';
}

std::vector<const LocalModel*> local_models_named(const LocalModels& here, std::string_view name) {
  std::vector<const LocalModel*> named;
  for (const Reading& means : kReadings) {
    for (const LocalModel& model : here.models)
      if (means(model, name)) named.push_back(&model);
    if (!named.empty()) break;
  }
  return named;
}

Error local_name_error(const LocalModels& here, const std::string& name) {
  const std::vector<const LocalModel*> named = local_models_named(here, name);
  if (named.size() > 1)
    return Error(ErrorKind::kUsage, "several models on this machine have this name")
        .in(name)
        .expected("the whole name of one, as `sluice list` shows it")
        .found(some_of(named))
        .fix("give one of these");
  if (named.size() == 1)
    return Error(ErrorKind::kNotFound, "the model of this name is not whole")
        .in(name)
        .expected("all that belongs to " + named[0]->path)
        .found(named[0]->fault)
        .fix("download it again with " + std::string(named[0]->title));
  std::string places;
  for (const LocalPlace& place : here.places) places += (places.empty() ? "" : ", ") + place.path;
  const std::string meant = nearest_name(here, name);
  return Error(ErrorKind::kNotFound, "no such file or directory, and no model of this name on this machine")
      .in(name)
      .expected("a path, or a name that `sluice list` shows")
      .found("nothing here, and none in " + places)
      .fix(meant.empty() ? "check the name: `sluice list` shows those that are here"
                         : "did you mean " + meant + "?");
}

}  // namespace sluice::store
