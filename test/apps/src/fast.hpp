// What the Fast DDS programs share. They are written against Fast DDS itself,
// with the types, QoS and sample identities of rmw_fastrtps.
#ifndef FAST_HPP
#define FAST_HPP

#include "common.h"

#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/DataWriterListener.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace fdds = eprosima::fastdds::dds;
namespace rtps = eprosima::fastrtps::rtps;

// A ROS 2 message with one field, `uint8[] data`.
using Octets = std::vector<uint8_t>;

// Its type support.
class OctetsType : public fdds::TopicDataType {
public:
  explicit OctetsType(const std::string & name);
  bool serialize(void * data, rtps::SerializedPayload_t * payload) override;
  bool deserialize(rtps::SerializedPayload_t * payload, void * data) override;
  std::function<uint32_t()> getSerializedSizeProvider(void * data) override;
  void * createData() override;
  void deleteData(void * data) override;
  bool getKey(void * data, rtps::InstanceHandle_t * handle, bool force_md5) override;
};

// The two ends of a service, at the client or at the server. Listeners may be
// null and must outlive it.
struct ServiceEnd {
  fdds::DomainParticipant * participant;
  fdds::DataReader * reader;
  fdds::DataWriter * writer;
};
enum class Role { client, server };
ServiceEnd new_service_end(const std::string & service, int64_t domain, Role role,
  fdds::DataReaderListener * reader_listener, fdds::DataWriterListener * writer_listener);

// Deletes the participant that argument (a ServiceEnd *) holds.
void delete_service_end(void * argument);

#endif
