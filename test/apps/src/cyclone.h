// What the Cyclone DDS programs share.
#ifndef CYCLONE_H
#define CYCLONE_H

#include "common.h"

#include "dds/dds.h"
#include "types.h"

typedef fogplr_test_srv_dds__Echo_Request_ echo_request;
typedef fogplr_test_srv_dds__Echo_Response_ echo_response;
typedef fogplr_test_msg_dds__Stream_ stream_sample;
#define echo_request_desc fogplr_test_srv_dds__Echo_Request__desc
#define echo_response_desc fogplr_test_srv_dds__Echo_Response__desc
#define stream_desc fogplr_test_msg_dds__Stream__desc

// Returns value, or ends the program when it is an error.
int32_t checked(int32_t value, const char *what);

dds_entity_t new_participant(int64_t domain);

// The two ends of a service, at the client or at the server. Names, QoS and user
// data are those of rmw_cyclonedds: the user data of both ends holds the same
// id, by which the server knows which reader goes with which writer.
struct service_end {
  dds_entity_t participant, reader, writer;
};
enum service_role { SERVICE_CLIENT, SERVICE_SERVER };
struct service_end new_service_end(const char *service, int64_t domain, enum service_role role);

// A ROS 2 topic of streams and the QoS for its ends: volatile, keep-last depth,
// or keep-all when depth is 0.
struct stream_end {
  dds_entity_t topic;
  dds_qos_t *qos;
};
struct stream_end new_stream_end(dds_entity_t participant, const char *name, bool reliable, int64_t depth);

// Copies the value of key in user data of the form key=value; into id (ID_SIZE
// bytes); false when there is none.
#define ID_SIZE 64
bool user_data_value(const dds_qos_t *qos, const char *key, char *id);

// How many writers (readers) on the other side an endpoint has found.
int matched_writers(dds_entity_t reader);
int matched_readers(dds_entity_t writer);

// Returns a waitset that wakes when the reader has data.
dds_entity_t new_waitset(dds_entity_t participant, dds_entity_t reader);

// Deletes the participant that argument (a dds_entity_t *) points to.
void delete_participant(void *argument);

#endif
