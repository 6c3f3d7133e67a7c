// Models that lie on this machine already, where other programs keep what they have downloaded. They are
// looked for, read only; nothing is ever asked of a network. docs/local-models.md has the places.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "store/local/local_environment.h"

namespace sluice::store {

enum class LocalForm { kSafetensors, kGguf };
std::string_view local_form_name(LocalForm form);

struct LocalModel {
  std::string name{};          // that no other has: what to type
  std::string own_name{};      // the same, without the program that tells it from another
  std::string repository{};    // it may be the only model of this one: "ORG/NAME"; empty: none
  std::string_view program{};  // "huggingface", "llama.cpp", "lm-studio", "ollama"
  std::string_view title{};    // that program, as people call it
  LocalForm form = LocalForm::kSafetensors;
  std::string path{};     // what opens it: a directory, or the first GGUF file
  std::size_t files = 0;  // with weights, that it has
  Bytes bytes = 0;        // bytes of those that are there
  std::string fault{};    // why it cannot be opened; empty: nothing is missing
};

struct LocalPlace {
  std::string_view title;  // the title of its program
  std::string path;
  bool there = false;
};

struct LocalModels {
  std::vector<LocalModel> models;  // ascending by name
  std::vector<LocalPlace> places;  // that were looked at, in the order of the programs
  std::vector<std::string> notes;  // what could not be looked at, and why
};

// Folders of strangers may be of any size: what is beyond these is left out, and a note says so.
struct LocalLimits {
  std::size_t of_folder = 10'000;  // entries of one folder
  std::size_t in_all = 200'000;    // entries of all of them
};

// Never fails: what cannot be read is left out, and a note says so; what lacks a piece has a fault.
LocalModels find_local_models(const LocalEnvironment& environment, const LocalLimits& limits = {});

}  // namespace sluice::store
