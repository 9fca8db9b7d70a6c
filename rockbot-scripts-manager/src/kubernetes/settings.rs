//! The section `Kubernetes` of the configuration.

use std::time::Duration;

use rockbot_core::BoxError;
use rockbot_core::config::Config;

/// The settings of pods for scripts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KubernetesSettings {
    /// `Namespace`: the namespace of the pods, which denies all network traffic. Default
    /// `rockbot-scripts`.
    pub(crate) namespace: String,
    /// `Image`: the image of the pods, with `python3` and `sh`. Default `python:3.12-slim`.
    pub(crate) image: String,
    /// `CpuMillis`: thousandths of a CPU that a pod has. Default 500.
    pub(crate) cpu_millis: u32,
    /// `MemoryMegabytes`: memory of a pod in MiB. Default 256.
    pub(crate) memory_megabytes: u64,
    /// `NodeName`: the node of all pods, for clusters without a scheduler. Default none.
    pub(crate) node_name: Option<String>,
    /// `StartSeconds`: time that a pod has to start, with the download of its image. Default 20: an
    /// agent waits for 30 seconds beyond the time of its script.
    pub(crate) start_limit: Duration,
    /// `PackageClaim`: the claim of a volume for installed packages. Default none: a script with
    /// packages is refused.
    pub(crate) package_claim: Option<String>,
    /// `PackageIndex`: URL of a package index, without a password: pods show it. Default that of
    /// `pip`.
    pub(crate) package_index: Option<String>,
}

impl KubernetesSettings {
    /// Reads the settings from `config`.
    pub(crate) fn from_config(config: &Config) -> Result<Self, BoxError> {
        let section = config.section("Kubernetes")?;
        let settings = Self {
            namespace: section.get_or("Namespace", "rockbot-scripts".to_owned())?,
            image: section.get_or("Image", "python:3.12-slim".to_owned())?,
            cpu_millis: section.get_or("CpuMillis", 500)?,
            memory_megabytes: section.get_or("MemoryMegabytes", 256)?,
            node_name: section.get("NodeName")?,
            start_limit: Duration::from_secs(section.get_or("StartSeconds", 20)?),
            package_claim: section.get("PackageClaim")?,
            package_index: section.get("PackageIndex")?,
        };
        if !(32..=1 << 20).contains(&settings.memory_megabytes) {
            return Err("`Kubernetes.MemoryMegabytes` is between 32 and 1048576".into());
        }
        if settings.cpu_millis == 0 || settings.start_limit.is_zero() {
            return Err("`Kubernetes.CpuMillis` and `Kubernetes.StartSeconds` are above zero".into());
        }
        if settings.package_index.as_ref().is_some_and(|index| index.contains('@')) {
            return Err(
                "`Kubernetes.PackageIndex` has a password, which pods would show: use an index without one".into(),
            );
        }
        Ok(settings)
    }
}
