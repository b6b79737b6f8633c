//! The memory of textures that a target has, as layouts are told of it.

use tilewright_layout::textures::TextureMemory;
use tilewright_target::Target;

/// The textures of a target in which values are to lie; `None` where buffers are as good.
pub fn memory_of(target: &Target) -> Option<TextureMemory> {
    let scope = target.preferred_textures()?;
    let [rows, columns] = scope.most[..] else { return None };
    let weights = target.scopes.iter().find(|s| &*s.name == "global.texture-weight");
    let [name, weights] = [scope, weights.unwrap_or(scope)].map(|s| s.name.clone());
    Some(TextureMemory { scope: name, weights, channels: scope.channels, most: [rows, columns] })
}
