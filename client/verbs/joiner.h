#pragma once
// Lets processes that start to match into a trace that runs. Used by the controlling thread.

#include "client/newcomers.h"
#include "client/stop_watch.h"
#include "client/talk.h"
#include "client/tracing_session.h"
#include "client/verbs/process_options.h"

namespace probed::client {

class Joiner {
 public:
  // `request` is what they are attached with. Borrows everything else.
  Joiner(const ProcessOptions& options, const v1::FindProcessesRequest& selection,
         v1::AttachTargetRequest request, Api& api, TracingSession& session, Talk& talk)
      : options_(options),
        request_(std::move(request)),
        newcomers_(api.WatchProcesses(selection)),
        session_(session),
        talk_(talk) {}

  int fd() const { return newcomers_.fd(); }
  // Takes in who has come, gives up who has gone; warns of those that could not be attached to.
  void Turn();

 private:
  const ProcessOptions& options_;
  v1::AttachTargetRequest request_;
  Newcomers newcomers_;
  TracingSession& session_;
  Talk& talk_;
};

}  // namespace probed::client
